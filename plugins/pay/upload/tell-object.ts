import { type Context, S3Error, type StoredObject } from 'dealgate'

/** Metadata that GET and HEAD report of an uploaded object; a client that sends it does not store it. */
export const OUTPUT_METADATA = ['pay-cid', 'pay-upload-id', 'pay-job'] as const
type Name = (typeof OUTPUT_METADATA)[number]

/** Adds facts to an object, if it is still the same. A caller who may upload an object need not be able to write it. */
export async function tellObject(
  own: Context,
  context: Context,
  { bucket, key, stamp }: Pick<StoredObject, 'bucket' | 'key' | 'stamp'>,
  facts: Partial<Record<Name, string>>,
): Promise<void> {
  const annotate = ({ store }: Context) =>
    store.annotate(bucket, key, stamp, (archive) => ({ ...archive, facts: { ...archive?.facts, ...facts } }))
  try {
    await annotate(context)
  } catch (error) {
    if (!(error instanceof S3Error) || error.code !== 'AccessDenied') throw error
    await annotate(own)
  }
}
