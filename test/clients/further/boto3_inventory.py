"""Inventories as boto3 configures them, and as csv, pyarrow and DuckDB read them. Arguments: endpoint."""

import base64
import csv
import gzip
import hashlib
import io
import json
import sys
import time
from urllib.parse import unquote, unquote_plus

import boto3
import duckdb
import pyarrow
import pyarrow.parquet
from botocore.auth import SigV4Auth
from botocore.awsrequest import AWSRequest
from botocore.exceptions import ClientError
from botocore.httpsession import URLLib3Session

endpoint = sys.argv[1]
session = boto3.session.Session(region_name="us-east-1")
client = session.client("s3", endpoint_url=endpoint)
source, reports = "boto3-inventory", "boto3-reports"

S3_FIELDS = [
    "Size", "LastModifiedDate", "StorageClass", "ETag", "IsMultipartUploaded", "ReplicationStatus",
    "EncryptionStatus", "ObjectLockRetainUntilDate", "ObjectLockMode", "ObjectLockLegalHoldStatus",
    "IntelligentTieringAccessTier", "BucketKeyStatus", "ChecksumAlgorithm", "ObjectAccessControlList",
    "ObjectOwner", "LifecycleExpirationDate",
]
OWN_FIELDS = [
    "x-Cid", "x-PieceCid", "x-DealState", "x-DealCount", "x-Providers", "x-DealEndEpoch", "x-DealEnd", "x-TaskUuid",
    "x-PayState", "x-BytesAt", "x-Tags", "x-Encryption",
]


def configure(name, format, versions):
    client.put_bucket_inventory_configuration(
        Bucket=source,
        Id=name,
        InventoryConfiguration={
            "Destination": {"S3BucketDestination": {"Bucket": f"arn:aws:s3:::{reports}", "Format": format, "Prefix": "i"}},
            "IsEnabled": False,
            "Id": name,
            "IncludedObjectVersions": versions,
            "OptionalFields": S3_FIELDS + OWN_FIELDS,
            "Schedule": {"Frequency": "Daily"},
        },
    )


def written(name):
    """Has the inventory written, and returns the manifest and the files, whose digests are right."""
    request = AWSRequest(
        "POST",
        f"{endpoint}/{source}?x-inventory=&format=json",
        data=json.dumps({"Id": name}),
        headers={"content-type": "application/json", "prefer": "wait=300"},
    )
    request.headers["x-amz-content-sha256"] = hashlib.sha256(request.data.encode()).hexdigest()
    SigV4Auth(session.get_credentials(), "s3", "us-east-1").add_auth(request)
    answer = URLLib3Session(timeout=310).send(request.prepare())
    assert answer.status_code == 200, answer.text
    text = body(json.loads(answer.text)["Manifest"])
    assert body(json.loads(answer.text)["Manifest"].replace(".json", ".checksum")).decode() == hashlib.md5(text).hexdigest()
    manifest = json.loads(text)
    files = []
    for file in manifest["files"]:
        files.append(body(file["key"]))
        assert len(files[-1]) == file["size"] and hashlib.md5(files[-1]).hexdigest() == file["MD5checksum"]
    return manifest, files


def body(key):
    return client.get_object(Bucket=reports, Key=key)["Body"].read()


client.create_bucket(Bucket=source, ObjectLockEnabledForBucket=True)
client.create_bucket(Bucket=reports)
try:
    configure("orc", "ORC", "All")
    raise AssertionError("ORC is not offered")
except ClientError as error:
    assert error.response["Error"]["Code"] == "InvalidArgument", error

keys = ["plain", "umlaut-äöü-ß", "a\nnewline", 'quo"te', "com,ma", "per%cent%41", "plus+plus", "emoji-😀", "sp ace/ä b"]
until = time.time() // 1 + 7200
for key in keys:
    client.put_object(Bucket=source, Key=key, Body=key.encode(), Tagging="a=b" if key == "plain" else "")
client.put_object(Bucket=source, Key="plain", Body=b"second", ServerSideEncryption="AES256")
client.put_object(
    Bucket=source,
    Key="locked",
    Body=b"locked",
    ObjectLockMode="COMPLIANCE",
    ObjectLockRetainUntilDate=until,
    ObjectLockLegalHoldStatus="ON",
    ChecksumAlgorithm="SHA256",
)
client.delete_object(Bucket=source, Key="com,ma")
expected = sorted(
    (version["Key"], version["VersionId"], version["IsLatest"], marker)
    for marker, list_ in ((False, "Versions"), (True, "DeleteMarkers"))
    for version in client.list_object_versions(Bucket=source)[list_]
)

# CSV, with both ways to decode keys.
configure("csv", "CSV", "All")
manifest, files = written("csv")
names = manifest["fileSchema"].split(", ")
assert names == ["Bucket", "Key", "VersionId", "IsLatest", "IsDeleteMarker"] + [
    name for name in ["Size", "LastModifiedDate", "ETag", "StorageClass", "IsMultipartUploaded", "ReplicationStatus",
    "EncryptionStatus", "ObjectLockRetainUntilDate", "ObjectLockMode", "ObjectLockLegalHoldStatus",
    "IntelligentTieringAccessTier", "BucketKeyStatus", "ChecksumAlgorithm", "ObjectAccessControlList", "ObjectOwner",
    "LifecycleExpirationDate"] + OWN_FIELDS
], names
lines = [line for file in files for line in csv.reader(io.StringIO(gzip.decompress(file).decode(), newline=""))]
for decode in (unquote, unquote_plus):
    found = sorted((decode(line[1]), line[2], line[3] == "true", line[4] == "true") for line in lines)
    assert found == expected, found

# Parquet.
configure("parquet", "Parquet", "All")
manifest, files = written("parquet")
assert manifest["fileSchema"].startswith("message s3.inventory { required binary bucket (UTF8); required binary key (UTF8);")
table = pyarrow.concat_tables([pyarrow.parquet.read_table(io.BytesIO(file)) for file in files])
types = {field.name: (str(field.type), field.nullable) for field in table.schema}
assert types["key"] == ("string", False) and types["version_id"] == ("string", True), types
assert types["size"] == ("int64", True) and types["is_latest"] == ("bool", True), types
assert types["last_modified_date"][0].startswith("timestamp[ms"), types
assert types["x_deal_count"] == ("int64", True) and types["x_deal_end"][0].startswith("timestamp[ms"), types
rows = table.to_pylist()
assert sorted((row["key"], row["version_id"], row["is_latest"], row["is_delete_marker"]) for row in rows) == expected
by = {(row["key"], row["is_latest"]): row for row in rows}
locked, marker, first, second = by["locked", True], by["com,ma", True], by["plain", False], by["plain", True]
assert locked["object_lock_mode"] == "Compliance" and locked["object_lock_legal_hold_status"] == "On", locked
assert locked["object_lock_retain_until_date"].timestamp() == until and locked["checksum_algorithm"] == "SHA256", locked
assert marker["is_delete_marker"] and marker["size"] is None and marker["last_modified_date"], marker
assert json.loads(first["x_tags"]) == {"a": "b"} and first["x_encryption"] is None, first
assert second["encryption_status"] == "SSE-S3" and second["x_encryption"] == "AES256" and second["size"] == 6, second
assert second["x_deal_count"] == 0 and second["x_deal_end"] is None and second["x_bytes_at"] == "gateway", second
assert json.loads(base64.b64decode(second["object_access_control_list"]))["grants"][0]["permission"] == "FULL_CONTROL"
assert first["e_tag"] == hashlib.md5(b"plain").hexdigest(), first

# The same with DuckDB, each column.
for number, file in enumerate(files):
    with open(f"inventory-{number}.parquet", "wb") as written_file:
        written_file.write(file)
query = duckdb.sql("SELECT * FROM 'inventory-*.parquet'")
assert query.columns == table.column_names, query.columns
order = lambda row: (row[1], row[2])
plain = lambda value: value.replace(tzinfo=None) if hasattr(value, "tzinfo") else value
ours = sorted([tuple(plain(value) for value in row.values()) for row in rows], key=order)
theirs = sorted([tuple(plain(value) for value in row) for row in query.fetchall()], key=order)
assert ours == theirs, [pair for pair in zip(ours, theirs) if pair[0] != pair[1]][:1]
assert duckdb.sql("SELECT count(*) FROM 'inventory-*.parquet' WHERE x_deal_count = 0").fetchall() == [(len(rows) - 1,)]

# Current objects alone.
configure("current", "Parquet", "Current")
_, files = written("current")
current = pyarrow.parquet.read_table(io.BytesIO(files[0])).to_pylist()
assert sorted(row["key"] for row in current) == sorted(key for key, _, latest, marker in expected if latest and not marker)
assert "version_id" not in current[0]
assert [one["Id"] for one in client.list_bucket_inventory_configurations(Bucket=source)["InventoryConfigurationList"]] == [
    "csv", "current", "parquet"
]
client.delete_bucket_inventory_configuration(Bucket=source, Id="csv")
print("ok")
