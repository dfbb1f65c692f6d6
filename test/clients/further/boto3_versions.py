"""Versions and object lock as boto3 uses them at its defaults. Arguments: endpoint."""

import datetime
import sys

import boto3
from botocore.exceptions import ClientError

endpoint = sys.argv[1]
client = boto3.client("s3", endpoint_url=endpoint, region_name="us-east-1")
resource = boto3.resource("s3", endpoint_url=endpoint, region_name="us-east-1")
bucket = "boto3-versions"


def refused(code, call, **params):
    try:
        call(**params)
    except ClientError as error:
        assert error.response["Error"]["Code"] == code, error
        return
    raise AssertionError(f"{code} was expected")


def body(key, **params):
    return client.get_object(Bucket=bucket, Key=key, **params)["Body"].read()


# Versions.
client.create_bucket(Bucket=bucket)
assert "Status" not in client.get_bucket_versioning(Bucket=bucket)
client.put_object(Bucket=bucket, Key="a b+ü", Body=b"null")
resource.BucketVersioning(bucket).enable()
assert client.get_bucket_versioning(Bucket=bucket)["Status"] == "Enabled"
first = client.put_object(Bucket=bucket, Key="a b+ü", Body=b"first")["VersionId"]
second = client.put_object(Bucket=bucket, Key="a b+ü", Body=b"second")["VersionId"]
assert body("a b+ü") == b"second"
assert body("a b+ü", VersionId=first) == b"first"
assert body("a b+ü", VersionId="null") == b"null"
marker = client.delete_object(Bucket=bucket, Key="a b+ü")
assert marker["DeleteMarker"] is True, marker
refused("NoSuchKey", client.get_object, Bucket=bucket, Key="a b+ü")
refused("MethodNotAllowed", client.get_object, Bucket=bucket, Key="a b+ü", VersionId=marker["VersionId"])
refused("NoSuchVersion", client.get_object, Bucket=bucket, Key="a b+ü", VersionId="0" * 32)
refused("InvalidArgument", client.get_object, Bucket=bucket, Key="a b+ü", VersionId="no-id")
restored = client.copy_object(
    Bucket=bucket, Key="a b+ü", CopySource={"Bucket": bucket, "Key": "a b+ü", "VersionId": first}
)
assert restored["CopySourceVersionId"] == first and restored["VersionId"] not in (first, second), restored
assert body("a b+ü") == b"first"
for n in range(5):
    client.put_object(Bucket=bucket, Key=f"dir/{n}", Body=b"x")
pages = client.get_paginator("list_object_versions").paginate(Bucket=bucket, PaginationConfig={"PageSize": 2})
found = [one for page in pages for one in page.get("Versions", []) + page.get("DeleteMarkers", [])]
assert len(found) == 10, found
assert [one["VersionId"] for one in found if one["IsLatest"] and one["Key"] == "a b+ü"] == [restored["VersionId"]]
folded = client.list_object_versions(Bucket=bucket, Delimiter="/")
assert folded["CommonPrefixes"] == [{"Prefix": "dir/"}], folded
refused("BucketNotEmpty", client.delete_bucket, Bucket=bucket)
resource.Bucket(bucket).object_versions.delete()
assert "Versions" not in client.list_object_versions(Bucket=bucket)
client.delete_bucket(Bucket=bucket)

# Object lock, as Veeam uses it: enabled with the bucket, no default retention, COMPLIANCE for each object.
client.create_bucket(Bucket=bucket, ObjectLockEnabledForBucket=True)
assert client.get_bucket_versioning(Bucket=bucket)["Status"] == "Enabled"
lock = client.get_object_lock_configuration(Bucket=bucket)["ObjectLockConfiguration"]
assert lock == {"ObjectLockEnabled": "Enabled"}, lock
until = datetime.datetime.now(datetime.timezone.utc).replace(microsecond=0) + datetime.timedelta(days=2)
kept = client.put_object(
    Bucket=bucket, Key="kept", Body=b"x", ObjectLockMode="COMPLIANCE", ObjectLockRetainUntilDate=until
)["VersionId"]
head = client.head_object(Bucket=bucket, Key="kept")
assert (head["ObjectLockMode"], head["ObjectLockRetainUntilDate"]) == ("COMPLIANCE", until), head
later = {"Mode": "COMPLIANCE", "RetainUntilDate": until + datetime.timedelta(days=1)}
client.put_object_retention(Bucket=bucket, Key="kept", VersionId=kept, Retention=later)
assert client.get_object_retention(Bucket=bucket, Key="kept", VersionId=kept)["Retention"] == later
sooner = {"Mode": "COMPLIANCE", "RetainUntilDate": until}
refused("AccessDenied", client.put_object_retention, Bucket=bucket, Key="kept", VersionId=kept, Retention=sooner)
for bypass in (False, True):
    refused(
        "AccessDenied",
        client.delete_object,
        Bucket=bucket,
        Key="kept",
        VersionId=kept,
        BypassGovernanceRetention=bypass,
    )
held = client.put_object(Bucket=bucket, Key="held", Body=b"x")["VersionId"]
client.put_object_legal_hold(Bucket=bucket, Key="held", LegalHold={"Status": "ON"})
answer = client.delete_objects(Bucket=bucket, Delete={"Objects": [{"Key": "held", "VersionId": held}]})
assert answer["Errors"][0]["Code"] == "AccessDenied", answer
client.put_object_legal_hold(Bucket=bucket, Key="held", LegalHold={"Status": "OFF"})
assert client.get_object_legal_hold(Bucket=bucket, Key="held")["LegalHold"]["Status"] == "OFF"
client.delete_object(Bucket=bucket, Key="held", VersionId=held)
rule = {"DefaultRetention": {"Mode": "GOVERNANCE", "Days": 1}}
client.put_object_lock_configuration(
    Bucket=bucket, ObjectLockConfiguration={"ObjectLockEnabled": "Enabled", "Rule": rule}
)
free = client.put_object(Bucket=bucket, Key="free", Body=b"x")["VersionId"]
refused("AccessDenied", client.delete_object, Bucket=bucket, Key="free", VersionId=free)
client.delete_object(Bucket=bucket, Key="free", VersionId=free, BypassGovernanceRetention=True)
