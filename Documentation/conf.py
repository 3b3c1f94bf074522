# SPDX-License-Identifier: GPL-2.0
"""Sphinx configuration: sphinx-build -W -b html Documentation build/doc"""

project = "nhca"
author = "the nhca developers"
extensions = []
root_doc = "index"
source_suffix = ".rst"
language = "en"
highlight_language = "none"
html_theme = "alabaster"
html_show_copyright = False
html_copy_source = False
