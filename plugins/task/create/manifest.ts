import { type Context, S3Error } from 'dealgate'

/** Largest CSV that is an object, bytes. */
export const MAX_MANIFEST = 16 * 1024 * 1024

export interface Manifest {
  readonly bucket: string
  readonly key: string
}

/**
 * The stamp of an object that holds a CSV, after a check that the caller may read it. Throws S3Error AccessDenied,
 * NoSuchKey, NoSuchBucket, InvalidObjectState, EntityTooLarge.
 */
export async function checkManifest(context: Context, { bucket, key }: Manifest): Promise<string> {
  await context.door.decide({ action: 's3:GetObject', bucket, key })
  context.checks.requireKey(bucket, key, 'read')
  const object = await context.store.head(bucket, key)
  if (object.cold) throw new S3Error('InvalidObjectState', { message: 'The CSV has to be restored first.' })
  if (object.size > MAX_MANIFEST) {
    throw new S3Error('EntityTooLarge', {
      message: `A CSV may have at most ${MAX_MANIFEST} bytes.`,
      fields: { ProposedSize: object.size, MaxSizeAllowed: MAX_MANIFEST },
    })
  }
  return object.stamp
}

/**
 * The text of the object, if it is still the one with this stamp. Throws S3Error as `checkManifest`,
 * PreconditionFailed.
 */
export async function readManifest(context: Context, manifest: Manifest & { readonly stamp: string }): Promise<string> {
  const { bucket, key, stamp } = manifest
  await checkManifest(context, manifest)
  const { object, download } = await context.store.open(bucket, key)
  if (object.stamp !== stamp) {
    download.discard()
    throw new S3Error('PreconditionFailed', { message: 'The CSV was replaced before its task was created.' })
  }
  const chunks: Buffer[] = []
  await download.consume((chunk) => {
    chunks.push(Buffer.from(chunk))
  })
  try {
    return new TextDecoder('utf-8', { fatal: true }).decode(Buffer.concat(chunks))
  } catch (cause) {
    throw new S3Error('InvalidArgument', { message: 'The CSV is not UTF-8.', cause })
  }
}
