import { OutcomeUnknown, type RunningJob, S3Error, type z } from 'dealgate'
import type { Actor } from '../login/acting.js'
import type { PayParts } from '../parts.js'
import type { MadeFile, MadeUpload } from '../records/made-uploads.js'
import {
  BEARER_PURPOSE,
  fileNameOf,
  type madeUpload,
  type UploadInput,
  type UploadResult,
  type UploadTerms,
} from './input.js'
import { tellObject } from './tell-object.js'

type UploadingJob = RunningJob<UploadInput>

export type FoundUpload = Pick<MadeFile, 'uploadId' | 'cid' | 'wCid' | 'url' | 'size' | 'status' | 'wallet'>

/**
 * Records the upload of a job, and tells it of the object. Throws OutcomeUnknown when that fails; it can be repeated.
 */
export async function record(parts: PayParts, job: UploadingJob, found: FoundUpload): Promise<UploadResult> {
  const { id, accessKeyId } = job.job
  const { bucket, key, stamp, days, fileType } = job.input
  try {
    const birth = await parts.host.own.births.now(bucket)
    const made: MadeUpload = {
      ...found,
      jobId: id,
      bucket,
      key,
      stamp,
      ...(birth !== undefined && { birth }),
      name: fileNameOf(key),
      days,
      fileType,
      accessKeyId,
      made: parts.host.now(),
    }
    await parts.made.remember(made)
    await parts.made.settle(id)
    return await tell(parts, job, made)
  } catch (cause) {
    throw new OutcomeUnknown('The object was uploaded, but that could not be recorded.', { cause })
  }
}

/** The result of a job whose upload is on record. The object's metadata may be updated later. */
export async function tell(parts: PayParts, job: UploadingJob, made: MadeUpload): Promise<UploadResult> {
  job.note(`upload ${made.uploadId}`)
  job.link('Payment', `/-/pay/v1/uploads/${made.uploadId}/payment`)
  try {
    await tellObject(parts.host.own, job.context, made, { 'pay-cid': made.cid, 'pay-upload-id': String(made.uploadId) })
  } catch (err) {
    job.log.warn({ err, upload: made.uploadId }, 'object uploaded; its metadata is not yet updated')
  }
  return { Bucket: made.bucket, Key: made.key, ...resultOf(made) }
}

export function resultOf(made: MadeFile): z.output<typeof madeUpload> {
  return {
    JobId: made.jobId,
    SourceFileUploadId: made.uploadId,
    PayloadCid: made.cid,
    IpfsUrl: made.url,
    FileSize: made.size,
    WCid: made.wCid,
    DurationDays: made.days,
    ...(made.status !== undefined && { Status: made.status }),
  }
}

/** Who the job acts as: the identity that requested it, or the token of the request. */
export async function actorOfJob(
  parts: PayParts,
  { input, context }: Pick<RunningJob<UploadTerms>, 'input' | 'context'>,
): Promise<Actor> {
  if (input.bearer === undefined) return { identity: context.caller?.identity, bearer: undefined }
  const bearer = await parts.host.sealer.open(input.bearer, BEARER_PURPOSE)
  if (bearer === undefined) throw new S3Error('WalletNotLinked', { message: 'The token of the request is lost.' })
  return { identity: undefined, bearer }
}
