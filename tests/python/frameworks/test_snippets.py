"""The snippet of docs/frameworks.md of the framework that RIPPLEMEM_FRAMEWORK names."""

import os

from snippets import run


def test_the_snippet_prints_what_the_page_says(service):
    run(os.environ["RIPPLEMEM_FRAMEWORK"], service.url)
