"""The steps of AWS's own scenario for S3 Batch Operations, and a job that runs to its end, with boto3."""

import json
import sys
import time

import boto3
from botocore.exceptions import ClientError

ENDPOINT, CONTROL_ENDPOINT = sys.argv[1:]
ACCOUNT = "111122223333"
s3 = boto3.client("s3", endpoint_url=ENDPOINT)
control = boto3.client("s3control", endpoint_url=CONTROL_ENDPOINT)


def code_of(call, **kwargs):
    try:
        call(AccountId=ACCOUNT, **kwargs)
    except ClientError as error:
        return error.response["Error"]["Code"]
    return None


def same(found, expected):
    assert found == expected, f"{found!r} is not {expected!r}"


def reaches(job, *states):
    for _ in range(600):
        found = control.describe_job(AccountId=ACCOUNT, JobId=job)["Job"]
        if found["Status"] in states:
            return found
        time.sleep(0.1)
    raise AssertionError(f"{job} stays {found['Status']}")


s3.create_bucket(Bucket="batch-things")
for number in range(4):
    s3.put_object(Bucket="batch-things", Key=f"object key {number}.txt", Body=b"x")
rows = "".join(f"batch-things,object%20key%20{number}.txt\n" for number in range(4))
etag = s3.put_object(Bucket="batch-things", Key="job-manifest.csv", Body=rows)["ETag"].strip('"')


def create(operation, confirm, **more):
    return control.create_job(
        AccountId=ACCOUNT,
        Operation=operation,
        Report={
            "Bucket": "arn:aws:s3:::batch-things",
            "Format": "Report_CSV_20180820",
            "Enabled": True,
            "Prefix": "batch-op-reports",
            "ReportScope": "AllTasks",
        },
        Priority=10,
        RoleArn=f"arn:aws:iam::{ACCOUNT}:role/anything",
        Description="Batch job for tagging objects",
        ConfirmationRequired=confirm,
        **{
            "Manifest": {
                "Spec": {"Format": "S3BatchOperations_CSV_20180820", "Fields": ["Bucket", "Key"]},
                "Location": {"ObjectArn": "arn:aws:s3:::batch-things/job-manifest.csv", "ETag": etag},
            },
            **more,
        },
    )["JobId"]


tagging = {"S3PutObjectTagging": {"TagSet": [{"Key": "BatchTag", "Value": "BatchValue"}]}}
job = create(tagging, True, Tags=[{"Key": "Environment", "Value": "Dev"}])
reaches(job, "Suspended")
same(control.update_job_priority(AccountId=ACCOUNT, JobId=job, Priority=60)["Priority"], 60)
found = control.describe_job(AccountId=ACCOUNT, JobId=job)["Job"]
same((found["Priority"], found["ProgressSummary"]["TotalNumberOfTasks"]), (60, 4))
same(found["Operation"], tagging)
same(found["Manifest"]["Location"]["ETag"], etag)
same(found["Report"]["Prefix"], "batch-op-reports")
assert found["SuspendedDate"] and found["JobArn"].endswith(f"job/{job}")
same(control.get_job_tagging(AccountId=ACCOUNT, JobId=job)["Tags"], [{"Key": "Environment", "Value": "Dev"}])
control.put_job_tagging(AccountId=ACCOUNT, JobId=job, Tags=[{"Key": "Team", "Value": "ü & <x>"}])
same(control.get_job_tagging(AccountId=ACCOUNT, JobId=job)["Tags"], [{"Key": "Team", "Value": "ü & <x>"}])
control.delete_job_tagging(AccountId=ACCOUNT, JobId=job)
same(control.get_job_tagging(AccountId=ACCOUNT, JobId=job)["Tags"], [])
listed = control.list_jobs(AccountId=ACCOUNT, JobStatuses=["Suspended", "Active"], MaxResults=10)["Jobs"]
same([(one["JobId"], one["Operation"], one["Status"]) for one in listed], [(job, "S3PutObjectTagging", "Suspended")])

same(control.update_job_status(AccountId=ACCOUNT, JobId=job, RequestedJobStatus="Ready")["JobId"], job)
found = reaches(job, "Complete", "Failed")
same((found["Status"], found["ProgressSummary"]["NumberOfTasksSucceeded"]), ("Complete", 4))
tags = s3.get_object_tagging(Bucket="batch-things", Key="object key 2.txt")["TagSet"]
same(tags, [{"Key": "BatchTag", "Value": "BatchValue"}])
report = s3.get_object(Bucket="batch-things", Key=f"batch-op-reports/job-{job}/report.json")
results = json.loads(report["Body"].read())["Results"]
same([(one["TaskExecutionStatus"], one["Bucket"]) for one in results], [("succeeded", "batch-things")])
lines = s3.get_object(Bucket="batch-things", Key=results[0]["Key"])["Body"].read().decode().splitlines()
same(sorted(lines)[0], "batch-things,object%20key%200.txt,,succeeded,200,,")
same(code_of(control.update_job_status, JobId=job, RequestedJobStatus="Cancelled"), "JobStatusException")
same(code_of(control.describe_job, JobId="j-00000000000000000000000000"), "NoSuchJob")

generator = {
    "S3JobManifestGenerator": {
        "SourceBucket": "arn:aws:s3:::batch-things",
        "EnableManifestOutput": False,
        "Filter": {"KeyNameConstraint": {"MatchAnySuffix": ["1.txt", "2.txt"]}, "MatchAnyStorageClass": ["STANDARD"]},
    }
}
copy = {
    "S3PutObjectCopy": {
        "TargetResource": "arn:aws:s3:::batch-things",
        "TargetKeyPrefix": "copies",
        "NewObjectMetadata": {"UserMetadata": {"k": "v"}, "ContentType": "text/plain"},
        "NewObjectTagging": [{"Key": "a", "Value": "b"}],
    }
}
job = control.create_job(
    AccountId=ACCOUNT,
    Operation=copy,
    Report={"Enabled": False},
    Priority=1,
    RoleArn=f"arn:aws:iam::{ACCOUNT}:role/anything",
    ConfirmationRequired=False,
    ManifestGenerator=generator,
)["JobId"]
same(reaches(job, "Complete", "Failed")["ProgressSummary"]["NumberOfTasksSucceeded"], 2)
head = s3.head_object(Bucket="batch-things", Key="copies/object key 1.txt")
same((head["Metadata"], head["ContentType"]), ({"k": "v"}, "text/plain"))

checksum = {"S3ComputeObjectChecksum": {"ChecksumAlgorithm": "SHA256", "ChecksumType": "FULL_OBJECT"}}
job = create(checksum, False)
same(reaches(job, "Complete", "Failed")["ProgressSummary"]["NumberOfTasksSucceeded"], 4)
job = create({"S3DeleteObjectTagging": {}}, True)
same(control.update_job_status(AccountId=ACCOUNT, JobId=job, RequestedJobStatus="Cancelled")["Status"], "Cancelling")
reaches(job, "Cancelled")
same(code_of(control.create_job, Operation={"LambdaInvoke": {"FunctionArn": "arn:aws:lambda:x:1:function:f"}}, Report={"Enabled": False}, Priority=1, RoleArn=f"arn:aws:iam::{ACCOUNT}:role/a", ManifestGenerator=generator), "NotImplemented")
token = {"Operation": {"S3DeleteObjectTagging": {}}, "Report": {"Enabled": False}, "ManifestGenerator": generator}
token = {**token, "RoleArn": f"arn:aws:iam::{ACCOUNT}:role/a", "ClientRequestToken": "once", "ConfirmationRequired": True}
first = control.create_job(AccountId=ACCOUNT, Priority=1, **token)["JobId"]
same(control.create_job(AccountId=ACCOUNT, Priority=1, **token)["JobId"], first)
same(code_of(control.create_job, Priority=2, **token), "IdempotencyException")
