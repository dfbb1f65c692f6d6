"""A short round through S3 by minio-py at its defaults. Arguments: host and port. Exits 0 when everything is as it should be."""

import io
import os
import sys

from minio import Minio
from minio.commonconfig import CopySource
from minio.deleteobjects import DeleteObject
from minio.error import S3Error

client = Minio(
    endpoint=sys.argv[1],
    access_key=os.environ["AWS_ACCESS_KEY_ID"],
    secret_key=os.environ["AWS_SECRET_ACCESS_KEY"],
    secure=False,
)
bucket = "minio-py-matrix"
small, large = os.urandom(1000), os.urandom(11 * 1024 * 1024)


def read(name, **options):
    response = client.get_object(bucket_name=bucket, object_name=name, **options)
    try:
        return response.read()
    finally:
        response.close()
        response.release_conn()


def put(name, data, **options):
    return client.put_object(bucket_name=bucket, object_name=name, data=io.BytesIO(data), **options)


client.make_bucket(bucket_name=bucket)
assert client.bucket_exists(bucket_name=bucket)
written = put("a b+c/ü.bin", small, length=len(small), metadata={"word": "kept"})
found = client.stat_object(bucket_name=bucket, object_name="a b+c/ü.bin")
assert (found.etag, found.size, found.metadata["x-amz-meta-word"]) == (written.etag, len(small), "kept")
assert read("a b+c/ü.bin") == small
assert read("a b+c/ü.bin", offset=10, length=10) == small[10:20]
put("large", large, length=-1, part_size=5 * 1024 * 1024)
assert read("large") == large

client.copy_object(bucket_name=bucket, object_name="copy", source=CopySource(bucket_name=bucket, object_name="a b+c/ü.bin"))
assert read("copy") == small
names = [item.object_name for item in client.list_objects(bucket_name=bucket, recursive=True)]
assert names == ["a b+c/ü.bin", "copy", "large"], names
level = {item.object_name for item in client.list_objects(bucket_name=bucket)}
assert level == {"a b+c/", "copy", "large"}, level
try:
    read("absent")
    raise AssertionError("there is no such object")
except S3Error as error:
    assert error.code == "NoSuchKey", error

errors = client.remove_objects(bucket_name=bucket, delete_object_list=[DeleteObject(name=name) for name in names])
assert list(errors) == []
client.remove_bucket(bucket_name=bucket)
