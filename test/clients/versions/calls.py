"""Sends S3 requests with a client at its defaults: a request, and then its answer, is a line of JSON.

Arguments: boto3 or aws-cli, endpoint. The commands of aws-cli run in this process: its start takes most of their time.
"""

import contextlib
import io
import json
import re
import sys
import tempfile

client_name, endpoint = sys.argv[1:]


def boto3_caller():
    import boto3
    from botocore import xform_name
    from botocore.exceptions import ClientError

    client = boto3.client("s3", endpoint_url=endpoint, region_name="us-east-1")

    def call(operation, params, page_size=None):
        method = xform_name(operation)
        try:
            if page_size:
                pages = client.get_paginator(method).paginate(**params, PaginationConfig={"PageSize": page_size})
                return {"answer": pages.build_full_result()}
            answer = getattr(client, method)(**params)
        except ClientError as error:
            headers = error.response["ResponseMetadata"]["HTTPHeaders"]
            return {"code": error.response["Error"]["Code"], "headers": headers}
        if "Body" in answer:
            answer["Body"] = answer["Body"].read().decode()
        return {"answer": answer}

    return call


def aws_cli_caller():
    from awscli.botocore import xform_name
    from awscli.clidriver import create_clidriver

    driver = create_clidriver()
    files = tempfile.TemporaryDirectory()

    def flags(name, value):
        flag = f"--{xform_name(name, '-')}"
        if value is True:
            return [flag]
        if name == "Body":
            path = f"{files.name}/up"
            with open(path, "w") as file:
                file.write(value)
            return [flag, path]
        return [flag, json.dumps(value) if isinstance(value, (dict, list)) else str(value)]

    def call(operation, params, page_size=None):
        args = ["--endpoint-url", endpoint, "--output", "json", "s3api", xform_name(operation, "-")]
        for name, value in params.items():
            args += flags(name, value)
        if page_size:
            args += ["--page-size", str(page_size)]
        down = f"{files.name}/down"
        if operation == "GetObject":
            args.append(down)
        out, err = io.StringIO(), io.StringIO()
        with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
            status = driver.main(args)
        if status != 0:
            code = re.search(r"An error occurred \((\w+)\)", err.getvalue())
            if code is None:
                raise RuntimeError(f"{args}: {err.getvalue()}")
            return {"code": code[1]}
        answer = json.loads(out.getvalue() or "{}")
        if operation == "GetObject":
            with open(down) as file:
                answer["Body"] = file.read()
        return {"answer": answer}

    return call


call = {"boto3": boto3_caller, "aws-cli": aws_cli_caller}[client_name]()
for line in sys.stdin:
    print(json.dumps(call(*json.loads(line)), default=lambda date: date.isoformat()), flush=True)
