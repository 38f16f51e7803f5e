"""Pages as a test reads them."""

from html.parser import HTMLParser

VOID = {"meta", "br", "link", "img", "input", "hr"}


class Parsed(HTMLParser):
    """Tables as lists of rows of text; which sections there are; whether every element is closed."""

    def __init__(self, page):
        super().__init__()
        self.open, self.tables, self.ids, self.text, self.refers = [], [], [], [], []
        self.feed(page)
        assert self.open == []

    def handle_starttag(self, tag, attributes):
        attributes = dict(attributes)
        self.refers += [attributes[key] for key in ("src", "href", "xlink:href") if key in attributes]
        if tag == "h2":
            self.ids.append(attributes["id"])
        if tag == "table":
            self.tables.append([])
        if tag == "tr":
            self.tables[-1].append([])
        if tag in ("td", "th"):
            self.tables[-1][-1].append("")
        if tag not in VOID:
            self.open.append(tag)

    def handle_startendtag(self, tag, attributes):
        self.refers += [value for key, value in attributes if key in ("src", "href", "xlink:href")]

    def handle_endtag(self, tag):
        assert self.open.pop() == tag

    def handle_data(self, data):
        self.text.append(data)
        if self.open and self.open[-1] in ("td", "th"):
            self.tables[-1][-1][-1] += data
