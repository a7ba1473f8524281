"""How a page's blocks of details are put together again, as js/src/page/blocks.ts does it."""


def unfolded(block):
    """The spans of a block, each in full, by their ids."""
    before, found = {}, {}
    for span in block:
        detail, raw = dict(span["detail"]), dict(span["raw"])
        turns, texts = before.get(detail["kind"], ([], [""] * 4))
        same, own = span["turns"]
        detail["turns"] = turns[:same] + own
        texts = [_joined(old, *told) for old, told in zip(texts, span["texts"], strict=True)]
        before[detail["kind"]] = detail["turns"], texts
        for part, side, text in zip(
            (detail, detail, raw, raw), ("request", "reply") * 2, texts, strict=True
        ):
            part[side] = {**part[side], "text": text}
        found[detail["id"]] = {"detail": detail, "raw": raw}
    return found


def _joined(old, begin, end, middle):
    """Counted in UTF-16 units."""
    units = old.encode("utf-16-le", "surrogatepass")
    first, last = units[: 2 * begin], units[len(units) - 2 * end :]
    return (first + middle.encode("utf-16-le", "surrogatepass") + last).decode(
        "utf-16-le", "surrogatepass"
    )
