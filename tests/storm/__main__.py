"""Say what `make storm` found, and with how many kills: python -m tests.storm build/storm.xml.

Of several files, the last that has a test counts.
"""

import sys
from xml.etree import ElementTree


def main() -> None:
    cases = {
        (case.get("classname"), case.get("name")): case
        for file in sys.argv[1:]
        for case in ElementTree.parse(file).iter("testcase")
    }
    bad = ("failure", "error", "skipped")
    passed = sum(all(case.find(kind) is None for kind in bad) for case in cases.values())
    given = [found for case in cases.values() for found in case.iter("property") if found.get("name") == "kills"]
    kills = sum(int(found.get("value") or 0) for found in given)
    print(f"{passed} of {len(cases)} tests passed, with {kills} kills.")


if __name__ == "__main__":
    main()
