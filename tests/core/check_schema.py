"""Says of each file whether a JSON Schema accepts it: check_schema.py SCHEMA FILE... (needs Python's jsonschema)."""

import json
import sys

import jsonschema


def main():
    with open(sys.argv[1], encoding="utf-8") as file:
        schema = json.load(file)
    jsonschema.Draft202012Validator.check_schema(schema)
    validator = jsonschema.Draft202012Validator(schema)
    for path in sys.argv[2:]:
        with open(path, encoding="utf-8") as file:
            error = next(validator.iter_errors(json.load(file)), None)
        print("accepts" if error is None else "refuses")


if __name__ == "__main__":
    main()
