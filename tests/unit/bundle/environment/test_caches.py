"""Models and tokenizers are named, by where their libraries keep them."""

import pytest

from tape_jupyter.bundle.environment.caches import Model, model_of, cache_variables


@pytest.mark.parametrize(
    ("path", "name", "where"),
    [
        ("/h/.cache/huggingface/hub/models--BAAI--bge-small-en/snapshots/5c38ec7/config.json", "BAAI/bge-small-en@5c38ec7", "huggingface"),
        ("/data/hf/models--gpt2/blobs/abc", "gpt2", "huggingface"),
        ("/h/.cache/huggingface/hub/datasets--squad--v2/snapshots/00ab/a.parquet", "datasets/squad/v2@00ab", "huggingface"),
        ("/h/.cache/torch/sentence_transformers/all-MiniLM/model.bin", "all-MiniLM", "sentence-transformers"),
        ("/h/.cache/torch/hub/checkpoints/resnet18-5c106cde.pth", "resnet18-5c106cde.pth", "torch hub"),
        ("/h/.cache/torch/hub/pytorch_vision_main/hubconf.py", "pytorch_vision_main", "torch hub"),
        ("/tmp/data-gym-cache/9b5ad71b2ce5302211f9c61530b329a4922fc6a4", "cl100k_base", "tiktoken"),
        ("/h/nltk_data/corpora/stopwords/english", "corpora/stopwords", "nltk"),
        ("/h/nltk_data/tokenizers/punkt.zip", "tokenizers/punkt", "nltk"),
        ("/v/lib/python3.12/site-packages/en_core_web_sm/en_core_web_sm-3.8.0/vocab/x", "en_core_web_sm@3.8.0", "spacy"),
    ],
)  # fmt: skip
def test_a_file_of_a_cache_names_its_model(path, name, where):
    assert model_of(path) == Model(name, where)


@pytest.mark.parametrize(
    "path", ["/h/data.csv", "/h/nb/models/mine.bin", "/h/.cache/pip/x", "/h/torch/hub.py"]
)
def test_other_files_name_none(path):
    assert model_of(path) is None


def test_a_kernel_with_another_home_still_finds_the_models(tmp_path):
    (tmp_path / ".cache/huggingface").mkdir(parents=True)
    found = cache_variables({"TORCH_HOME": "/big/torch", "HOME": "/x"}, tmp_path)
    assert found == {"TORCH_HOME": "/big/torch", "HF_HOME": str(tmp_path / ".cache/huggingface")}
