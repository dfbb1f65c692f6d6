"""What boto3 signs with version 2: presigned URLs and forms by default, everything when asked to. Arguments: endpoint."""

import os
import sys
import urllib.error
import urllib.request
import uuid

import boto3
from botocore.config import Config

endpoint = sys.argv[1]
client = boto3.client("s3", endpoint_url=endpoint, region_name="us-east-1")
bucket = "boto3-version2"
client.create_bucket(Bucket=bucket)


def follow(url, method="GET", data=None, headers=None):
    """Status, headers and body. Sends no header but those given."""
    request = urllib.request.Request(url, data=data, method=method)
    for name, value in (headers or {}).items():
        request.add_header(name, value)
    if data is not None and "Content-Type" not in (headers or {}):
        # urllib would add a type, which the signature does not cover.
        request.add_unredirected_header("Content-Type", "")
    try:
        with urllib.request.urlopen(request) as answer:
            return answer.status, answer.headers, answer.read()
    except urllib.error.HTTPError as error:
        return error.code, error.headers, error.read()


def presigned(name, signer=client, **params):
    url = signer.generate_presigned_url(name, Params={"Bucket": bucket, **params})
    assert "AWSAccessKeyId=" in url, url
    return url


def check(answer, status, body=None):
    assert answer[0] == status, answer
    assert body is None or answer[2] == body, answer
    return answer


# Presigned URLs at boto3's defaults.
for key in ("plain", "a b+c/ü?&=%25 '()*!~.bin", "x//y/../z" if os.environ.get("FULL") else "x/y", "acl"):
    check(follow(presigned("put_object", Key=key), "PUT", b"first"), 200)
    check(follow(presigned("get_object", Key=key)), 200, b"first")
    check(follow(presigned("head_object", Key=key), "HEAD"), 200)
    assert follow(presigned("get_object", Key=key), "PUT", b"other")[0] == 403
    assert follow(presigned("get_object", Key=key).replace("Signature=", "Signature=A"))[0] == 403
    check(follow(presigned("delete_object", Key=key), "DELETE"), 204)
    check(follow(presigned("get_object", Key=key)), 404)

typed = presigned("put_object", Key="typed", ContentType="text/x-odd", Metadata={"word": "kept"}, ACL="private")
check(follow(typed, "PUT", b"typed", {"Content-Type": "text/x-odd"}), 200)
assert follow(typed, "PUT", b"typed", {"Content-Type": "text/html"})[0] in (400, 403)
assert follow(typed + "&x-amz-meta-more=1", "PUT", b"typed", {"Content-Type": "text/x-odd"})[0] == 403
head = client.head_object(Bucket=bucket, Key="typed")
assert (head["ContentType"], head["Metadata"]) == ("text/x-odd", {"word": "kept"}), head
shown = presigned(
    "get_object", Key="typed", ResponseContentType="a/b", ResponseContentDisposition='attachment; filename="a b;ü&c"'
)
status, headers, body = check(follow(shown), 200, b"typed")
assert headers["Content-Type"] == "a/b" and "a b;" in headers["Content-Disposition"], headers
check(follow(presigned("list_objects_v2")), 200)
check(follow(presigned("list_objects_v2", Prefix="a")), 400)
check(follow(presigned("get_object_tagging", Key="typed")), 200)

upload = client.create_multipart_upload(Bucket=bucket, Key="parts")["UploadId"]
part = presigned("upload_part", Key="parts", UploadId=upload, PartNumber=1)
etag = check(follow(part, "PUT", b"a part"), 200)[1]["ETag"]
assert follow(part.replace("partNumber=1", "partNumber=2"), "PUT", b"a part")[0] == 403
parts = {"Parts": [{"PartNumber": 1, "ETag": etag}]}
client.complete_multipart_upload(Bucket=bucket, Key="parts", UploadId=upload, MultipartUpload=parts)
check(follow(presigned("get_object", Key="parts")), 200, b"a part")


def post(form, data, **changed):
    boundary = uuid.uuid4().hex
    lines = []
    for name, value in {**form["fields"], **changed}.items():
        lines.append(f'--{boundary}\r\nContent-Disposition: form-data; name="{name}"\r\n\r\n{value}\r\n'.encode())
    lines.append(
        f'--{boundary}\r\nContent-Disposition: form-data; name="file"; filename="f"\r\n'
        f"Content-Type: application/octet-stream\r\n\r\n".encode() + data + f"\r\n--{boundary}--\r\n".encode()
    )
    return follow(form["url"], "POST", b"".join(lines), {"Content-Type": f"multipart/form-data; boundary={boundary}"})


# Forms at boto3's defaults.
form = client.generate_presigned_post(
    bucket,
    "form/${filename}",
    Fields={"x-amz-meta-word": "kept"},
    Conditions=[["starts-with", "$key", "form/"], {"x-amz-meta-word": "kept"}, ["content-length-range", 1, 100]],
)
assert {"AWSAccessKeyId", "policy", "signature"} <= set(form["fields"]), form
check(post(form, b"by form"), 204)
assert client.get_object(Bucket=bucket, Key="form/f")["Body"].read() == b"by form"
assert post(form, b"by form", key="elsewhere")[0] == 403
assert post(form, b"x" * 101)[0] == 400
assert post(form, b"by form", signature="AAAA")[0] == 403
assert post(form, b"by form", AWSAccessKeyId="unknown")[0] == 403

# Everything signed with version 2, in the header.
old = boto3.client("s3", endpoint_url=endpoint, region_name="us-east-1", config=Config(signature_version="s3"))
assert bucket in [found["Name"] for found in old.list_buckets()["Buckets"]]
old.put_object(Bucket=bucket, Key="ü b+c", Body=b"old", Metadata={"word": "kept"}, ContentType="a/b")
assert old.get_object(Bucket=bucket, Key="ü b+c")["Body"].read() == b"old"
old.put_object_tagging(Bucket=bucket, Key="ü b+c", Tagging={"TagSet": [{"Key": "a", "Value": "b"}]})
assert old.get_object_tagging(Bucket=bucket, Key="ü b+c")["TagSet"] == [{"Key": "a", "Value": "b"}]
old.copy_object(Bucket=bucket, Key="copy", CopySource={"Bucket": bucket, "Key": "ü b+c"})
listed = old.list_objects_v2(Bucket=bucket, Prefix="co", Delimiter="/")
assert [item["Key"] for item in listed["Contents"]] == ["copy"], listed
upload = old.create_multipart_upload(Bucket=bucket, Key="old-parts")["UploadId"]
etag = old.upload_part(Bucket=bucket, Key="old-parts", UploadId=upload, PartNumber=1, Body=b"a part")["ETag"]
parts = {"Parts": [{"PartNumber": 1, "ETag": etag}]}
old.complete_multipart_upload(Bucket=bucket, Key="old-parts", UploadId=upload, MultipartUpload=parts)
keys = [item["Key"] for item in old.list_objects_v2(Bucket=bucket)["Contents"]]
deleted = old.delete_objects(Bucket=bucket, Delete={"Objects": [{"Key": key} for key in keys]})
assert len(deleted["Deleted"]) == len(keys) and "Errors" not in deleted, deleted
old.delete_bucket(Bucket=bucket)
