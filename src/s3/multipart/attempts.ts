import { S3Error, slowDown, unless } from '../../../common/errors/s3-error.js'
import type { Context } from '../../api/context.js'
import type { Attempt } from '../../api/store.js'
import type { CompletionAttempt, UploadRecord } from '../../api/uploads.js'
import { attemptsOf, writeIdOf } from '../../state/uploads/uploads.js'

// The attempts to complete an upload, each with what must be known when its outcome is not: docs/consistency.md.

/** Most attempts of one upload with different lists of parts, or upon different objects, and unknown outcomes. */
const MAX_ATTEMPTS = 100

/** Thrown under the lock of the key: an earlier call has stored the object. Nothing was sent. */
export class StoredAlready extends S3Error {
  readonly made: Made

  constructor(made: Made) {
    super('OperationAborted', { message: 'An earlier call has completed this upload.' })
    this.made = made
  }
}

/** What is known of an object that an earlier call has stored. */
type Made = Pick<CompletionAttempt, 'versionId'>

/** Records an attempt. Two with the same list of parts upon the same object are one: neither decides more. */
export function attemptOf(context: Context, upload: UploadRecord, fingerprint: string): Attempt {
  const { uploads } = context.state
  let begun: CompletionAttempt | undefined
  let isNew = false
  const isBegun = ({ request, before }: CompletionAttempt) => request === begun?.request && before === begun.before
  return {
    async begin(before) {
      await uploads.attempt(upload.uploadId, (attempts) => {
        // Its outcome may have become known after this call had looked at it, and before it had the key.
        const made = attempts.find(({ request, landed }) => request === fingerprint && landed)
        if (made) throw new StoredAlready(made)
        begun = { request: fingerprint, before }
        isNew = !attempts.some(isBegun)
        if (isNew && attempts.length >= MAX_ATTEMPTS)
          throw slowDown('Too many calls to complete this upload have an unknown outcome. Abort it, and begin another.')
        return isNew ? [...attempts, begun] : attempts
      })
    },
    landed: ({ versionId }) =>
      uploads.attempt(upload.uploadId, (attempts) =>
        attempts.map((one) =>
          isBegun(one) ? { ...one, landed: true, ...(versionId !== undefined && { versionId }) } : one,
        ),
      ),
    async failed() {
      // An equal one that was begun before has an unknown outcome still.
      if (isNew) await uploads.attempt(upload.uploadId, (attempts) => attempts.filter((one) => !isBegun(one)))
    },
  }
}

/**
 * Resolves when an earlier call has stored the object, or may have, and a later write has replaced or removed it:
 * storing it again would undo that write. Between the calls, the outcome of the earlier one was unknown to the client.
 * Resolves undefined if the object is to be stored.
 */
export async function tookEffect(
  context: Context,
  upload: UploadRecord,
  fingerprint: string,
): Promise<Made | undefined> {
  const { bucket, key } = upload
  const attempts = attemptsOf(upload).filter(({ request }) => request === fingerprint)
  if (attempts.length === 0) return undefined
  const object = await context.store.findToWrite(bucket, key)
  if (object?.writeId === writeIdOf(upload, fingerprint)) return undefined
  const landed = attempts.find((attempt) => attempt.landed)
  if (landed) return landed
  if (attempts.every(({ before }) => before === (object?.revision ?? null))) return undefined
  // With versioning, those of both writes stay, and the gateway knows one that it has by the id of its write. Where it
  // is suspended, the later write has replaced the version without an id.
  if ((!object || object.versionId !== undefined) && (await keepsVersions(context, bucket))) return undefined
  // A gateway that does not return who wrote an object may show that of the upload, whose record is missing. Every
  // later write of this server has a record there.
  if (!object || (await context.gateway.features()).objectHead) return {}
  return (await context.state.objects.get(bucket, key))?.revision === object.revision ? {} : undefined
}

/** False also for a caller who may not know. */
async function keepsVersions({ gateway }: Context, bucket: string): Promise<boolean> {
  return (await unless('AccessDenied', gateway.versioning(bucket), undefined))?.status === 'Enabled'
}
