#!/usr/bin/env python3
"""The table of words for times in other languages than English, from Unicode's CLDR.

    npm pack cldr-dates-full@48.2.0 && tar -xzf cldr-dates-full-48.2.0.tgz
    scripts/times_table.py package src/memory/language/times/cldr

In: the unpacked npm package cldr-dates-full. Out: `times.tsv`, a line for each meaning of a language: code, meaning,
its phrases in lower case, separated by `|`; and CLDR's licence beside it. The same package gives the same bytes.

Meanings: `month N`, `short N` (its short form, which may be another word), `weekday N` (from Monday, 1), `day N`, `week N`, `months N`, `year N` and `weekdays D N` relative to now
(-1 last, 0 this, 1 next), `ago UNIT` and `in UNIT` with a number at `#`, `order` (of day, month and year in figures).
"""

import json
import shutil
import sys
from pathlib import Path

LANGUAGES = "ar de el es fa fr hi id it ja ko nl pl pt ru th tr uk vi zh".split()
DAYS = ["mon", "tue", "wed", "thu", "fri", "sat", "sun"]
# A shorter form of a month or a day is a word of its own too often.
LEAST_SHORT = 3
UNITS = ["day", "week", "month", "year"]


def lower(text, language):
    text = text.replace("\u200f", "").replace("\u200e", "").replace("\xa0", " ").replace("\u202f", " ")
    if language == "tr":
        text = text.replace("I", "ı").replace("İ", "i")
    return text.lower().strip()


def names(part, language, keys, widths):
    """Each key's names in these widths, without repetition."""
    found = {key: [] for key in keys}
    for width in widths:
        for form in ("format", "stand-alone"):
            for key in keys:
                name = lower(part[form][width][key], language).rstrip(".")
                short = width == "abbreviated" and (len(name) < LEAST_SHORT if name.isascii() else len(name) < 2)
                if name and not short and not name.isdigit() and name not in found[key]:
                    found[key].append(name)
    return found


def counted(field, when, language):
    patterns = field.get(f"relativeTime-type-{when}", {})
    found = []
    for pattern in patterns.values():
        phrase = lower(pattern, language).replace("{0}", "#")
        if "#" in phrase and phrase not in found:
            found.append(phrase)
    return found


def order(pattern):
    letters = [c.lower() for c in pattern if c in "yMd"]
    return "".join(dict.fromkeys(letters))


def rows(package, language):
    main = package / "main" / language
    fields = json.loads((main / "dateFields.json").read_text())["main"][language]["dates"]["fields"]
    dates = json.loads((main / "ca-gregorian.json").read_text())["main"][language]["dates"]
    gregorian = dates["calendars"]["gregorian"]
    numbers = [str(n) for n in range(1, 13)]
    months = names(gregorian["months"], language, numbers, ["wide"])
    yield from ((f"month {n}", months[n]) for n in months)
    short = names(gregorian["months"], language, numbers, ["abbreviated"])
    yield from ((f"short {n}", [name for name in short[n] if name not in months[n]]) for n in months)
    # In other scripts than Latin a short weekday is no other word.
    widths = ["wide", "abbreviated"] if language in ("ja", "ko", "th", "zh") else ["wide"]
    weekdays = names(gregorian["days"], language, DAYS, widths)
    yield from ((f"weekday {DAYS.index(day) + 1}", weekdays[day]) for day in DAYS)
    for unit in UNITS:
        name = "months" if unit == "month" else unit
        for key, phrase in fields[unit].items():
            if key.startswith("relative-type-"):
                yield f"{name} {int(key.removeprefix('relative-type-'))}", [lower(phrase, language)]
        yield f"ago {unit}", counted(fields[unit], "past", language)
        yield f"in {unit}", counted(fields[unit], "future", language)
    for number, day in enumerate(DAYS, 1):
        for which in (-1, 0, 1):
            yield f"weekdays {number} {which}", [lower(fields[day][f"relative-type-{which}"], language)]
    yield "order", [order(gregorian["dateFormats"]["short"])]


def main():
    if len(sys.argv) != 3:
        sys.exit("usage: times_table.py PACKAGE DIRECTORY")
    package, directory = map(Path, sys.argv[1:])
    lines = []
    for language in LANGUAGES:
        lines += [f"{language}\t{meaning}\t{'|'.join(phrases)}\n" for meaning, phrases in rows(package, language) if phrases]
    (directory / "times.tsv").write_text("".join(lines))
    shutil.copyfile(package / "LICENSE", directory / "LICENSE")


if __name__ == "__main__":
    main()
