"""Which command lines are known to stay on this machine; every other is taken to reach the network."""

import pytest

from tape_jupyter.core import shell_commands

HARMLESS = [
    "ls -l",
    "echo 'a; curl b'",
    "echo curl",
    "cd x && FOO=1 timeout 5 grep -r y . | sort | uniq -c > out.txt 2>&1",
    "for i in 1 2; do echo $i; done",
    "if test -f x; then cat x; else touch x; fi",
    "{ ls; pwd; }",
    "/bin/cat x > /dev/null",
    "git -C /tmp status",
    "find . -name '*.py' | xz -k",
    "sed -n 's/one/two/gp' x",
    "tar czf a.tgz dir",
    "",
]
REACHING = [
    "curl x",
    "/usr/bin/wget x",
    "A=1 timeout 5 curl x",
    "env -S 'curl x'",
    "for i in 1 2; do curl $i; done",
    "if curl x; then true; fi",
    "{ curl x; }",
    "! curl x",
    "cat x | nc host 1",
    "echo $(curl x)",
    "echo `curl x`",
    "cat <(curl x)",
    "eval 'curl x'",
    "source x.sh",
    ". x.sh",
    "X=curl; $X y",
    "f() { curl x; }; f",
    "ls () { curl x; }; ls",
    "exec 3<>/dev/tcp/127.0.0.1/80",
    'echo x > /dev/t""cp/h/80',
    "echo x > /dev/$P/h/80",
    "cat <<EOF\ncurl x\nEOF",
    "trap 'curl x' EXIT",
    "alias ls=curl",
    "unclosed 'quote",
    "find . -exec curl {} +",
    "echo x | xargs curl",
    "awk 'BEGIN { system(\"curl x\") }'",
    "sed 's/.*/curl x/e' y",
    "sed '1e curl x' y",
    "tar cf a --to-command=curl x",
    "git push",
    "git -C / fetch",
    "git -c alias.x=!curl x",
    "sort --compress-program=curl x",
    "hostname -f",
    "./ls",
    "bin/../ls/../x/cat",
    "python -c pass",
    "python3 script.py",
    "python3 -m pip install x",
    "node x.js",
    "sh x.sh",
    "bash",
    "sh -c ls",
    "make",
]


@pytest.mark.parametrize("script", HARMLESS)
def test_a_script_of_harmless_programs_is_harmless(script):
    assert shell_commands.harmless(["sh", "-c", script])


@pytest.mark.parametrize("script", REACHING)
def test_a_script_that_runs_or_hides_anything_else_is_not(script):
    assert not shell_commands.harmless(["bash", "-lc", script])


@pytest.mark.parametrize(
    ("words", "harmless"),
    [
        (["ls"], True),
        (["/usr/bin/ls", "a b; curl c"], True),
        (["nice", "-n", "5", "ls"], True),
        (["git", "commit", "-m", "x"], True),
        (["curl", "x"], False),
        (["bash"], False),
        (["sh", "x.sh"], False),
        (["cd"], False),
        ([], False),
        ([""], False),
    ],
)
def test_a_command_without_a_shell_is_judged_by_its_own_words(words, harmless):
    assert shell_commands.harmless(words) is harmless


def test_what_libraries_ask_of_the_system_is_not_worth_a_word():
    assert shell_commands.silent(["/sbin/ldconfig", "-p"])
    assert not shell_commands.silent(["ls"])
    assert not shell_commands.silent([])
