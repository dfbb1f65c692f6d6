"""The three forms of encryption by boto3. Arguments: endpoint. Exits 0 when everything is as it should be."""

import io
import os
import sys

import boto3

CHUNK = 64 * 1024
SIZES = [0, 1, CHUNK - 1, CHUNK, CHUNK + 1, 3 * CHUNK + 777]
client = boto3.client("s3", endpoint_url=sys.argv[1], region_name="us-east-1")
bucket = "boto3-encryption"
client.create_bucket(Bucket=bucket)

key, other = os.urandom(32), os.urandom(32)
forms = {
    "s3": ({"ServerSideEncryption": "AES256"}, {}),
    "kms": ({"ServerSideEncryption": "aws:kms", "SSEKMSKeyId": "archive"}, {}),
    "customer": ({"SSECustomerAlgorithm": "AES256", "SSECustomerKey": key},) * 2,
}


def refused(call, status, code=None, **arguments):
    try:
        call(Bucket=bucket, **arguments)
    except client.exceptions.ClientError as error:
        assert error.response["ResponseMetadata"]["HTTPStatusCode"] == status, error
        assert code in (None, error.response["Error"]["Code"]), error
        return
    raise AssertionError(f"it should have been refused with {status}: {arguments['Key']}")


def says(answer, write):
    for name in ("ServerSideEncryption", "SSEKMSKeyId", "SSECustomerAlgorithm"):
        assert answer.get(name) == write.get(name), (name, answer)


for form, (write, read) in forms.items():
    for size in SIZES:
        at, content = {"Bucket": bucket, "Key": f"{form}/{size}"}, os.urandom(size)
        put = client.put_object(Body=content, **at, **write)
        head = client.head_object(**at, **read)
        got = client.get_object(**at, **read)
        for answer in (put, head, got):
            says(answer, write)
        assert (got["Body"].read(), head["ContentLength"], head["ETag"]) == (content, size, put["ETag"]), at
        edges = {chunk * CHUNK + by for chunk in range(4) for by in (-1, 0, 1)}
        for first in sorted(edge for edge in edges if 0 <= edge < size):
            for length in (1, 2, CHUNK - 1, CHUNK, CHUNK + 1, 2 * CHUNK + 1):
                part = client.get_object(Range=f"bytes={first}-{first + length - 1}", **at, **read)["Body"].read()
                assert part == content[first : first + length], (at, first, length)
        refused(client.get_object, 416, "InvalidRange", Key=at["Key"], Range=f"bytes={size}-", **read)

    large, down = os.urandom(10 * 1024 * 1024 + 7), io.BytesIO()
    client.upload_fileobj(io.BytesIO(large), bucket, f"{form}/parts", ExtraArgs=write)
    client.download_fileobj(bucket, f"{form}/parts", down, ExtraArgs=read)
    assert down.getvalue() == large, form
    head = client.head_object(Bucket=bucket, Key=f"{form}/parts", **read)
    says(head, write)
    assert head["ETag"].endswith('-2"'), head

# What a copy becomes says its request, with the key of its source.
source = {"Bucket": bucket, "Key": f"customer/{CHUNK + 1}"}
of_source = {"CopySourceSSECustomerAlgorithm": "AES256", "CopySourceSSECustomerKey": key}
content = client.get_object(**source, **forms["customer"][1])["Body"].read()
for form, (write, read) in forms.items():
    client.copy_object(Bucket=bucket, Key=f"copies/{form}", CopySource=source, **of_source, **write)
    assert client.get_object(Bucket=bucket, Key=f"copies/{form}", **read)["Body"].read() == content, form

named = source["Key"]
refused(client.get_object, 400, "InvalidRequest", Key=named)
refused(client.head_object, 400, Key=named)
refused(client.get_object, 403, "AccessDenied", Key=named, SSECustomerAlgorithm="AES256", SSECustomerKey=other)
refused(client.get_object, 400, "InvalidRequest", Key="s3/1", **forms["customer"][1])
refused(client.copy_object, 400, "InvalidRequest", Key="no", CopySource=source)
refused(client.put_object, 400, "KMS.NotFoundException", Key="no", ServerSideEncryption="aws:kms", SSEKMSKeyId="none")
refused(client.head_object, 404, Key="no")

rule = {"ApplyServerSideEncryptionByDefault": {"SSEAlgorithm": "aws:kms", "KMSMasterKeyID": "archive"}}
client.put_bucket_encryption(Bucket=bucket, ServerSideEncryptionConfiguration={"Rules": [rule]})
found = client.get_bucket_encryption(Bucket=bucket)["ServerSideEncryptionConfiguration"]["Rules"]
assert found == [{**rule, "BucketKeyEnabled": False}], found
says(client.put_object(Bucket=bucket, Key="by default", Body=b"content"), forms["kms"][0])
client.delete_bucket_encryption(Bucket=bucket)
says(client.put_object(Bucket=bucket, Key="by default", Body=b"content"), {})
