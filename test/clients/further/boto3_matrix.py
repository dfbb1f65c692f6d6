"""A short round through S3 by boto3 at its defaults. Arguments: endpoint. Exits 0 when everything is as it should be."""

import io
import os
import sys

import boto3

client = boto3.client("s3", endpoint_url=sys.argv[1], region_name="us-east-1")
bucket = "boto3-matrix"
small, large = os.urandom(1000), os.urandom(9 * 1024 * 1024)

client.create_bucket(Bucket=bucket)
assert bucket in [found["Name"] for found in client.list_buckets()["Buckets"]]
put = client.put_object(Bucket=bucket, Key="a b+c/ü.bin", Body=small, Metadata={"word": "kept"}, ContentType="text/x-odd")
got = client.get_object(Bucket=bucket, Key="a b+c/ü.bin")
assert got["Body"].read() == small
assert (got["ETag"], got["Metadata"], got["ContentType"]) == (put["ETag"], {"word": "kept"}, "text/x-odd")
assert client.get_object(Bucket=bucket, Key="a b+c/ü.bin", Range="bytes=10-19")["Body"].read() == small[10:20]

client.upload_fileobj(io.BytesIO(large), bucket, "large")
down = io.BytesIO()
client.download_fileobj(bucket, "large", down)
assert down.getvalue() == large
assert client.head_object(Bucket=bucket, Key="large")["ETag"].endswith('-2"')

client.copy({"Bucket": bucket, "Key": "a b+c/ü.bin"}, bucket, "copy")
assert client.get_object(Bucket=bucket, Key="copy")["Body"].read() == small
pages = client.get_paginator("list_objects_v2").paginate(Bucket=bucket, PaginationConfig={"PageSize": 2})
assert [item["Key"] for page in pages for item in page["Contents"]] == ["a b+c/ü.bin", "copy", "large"]
try:
    client.put_object(Bucket=bucket, Key="copy", Body=b"", IfNoneMatch="*")
    raise AssertionError("the condition should have failed")
except client.exceptions.ClientError as error:
    assert error.response["ResponseMetadata"]["HTTPStatusCode"] == 412, error
try:
    client.get_object(Bucket=bucket, Key="absent")
    raise AssertionError("there is no such object")
except client.exceptions.NoSuchKey:
    pass

deleted = client.delete_objects(Bucket=bucket, Delete={"Objects": [{"Key": k} for k in ("a b+c/ü.bin", "copy", "large")]})
assert len(deleted["Deleted"]) == 3 and "Errors" not in deleted
client.delete_bucket(Bucket=bucket)
