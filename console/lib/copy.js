// Copies of an object onto its own key: how a version becomes current again, and how metadata and class change.
import { ApiError, readXml, send, sendXml } from './api.js'
import { without, writeDocument } from './s3.js'
import { pathOf, uriEncode } from './signer.js'

/** Classes that only name a price: a copy has that of its request, and `STANDARD` without one. */
export const LABELS = ['STANDARD_IA', 'ONEZONE_IA', 'INTELLIGENT_TIERING', 'REDUCED_REDUNDANCY']

/** The class by which a copy of an object keeps its own; an archive class is that of one version and its deals. */
export function keptClass(storageClass) {
  return LABELS.includes(storageClass) ? storageClass : undefined
}

/**
 * Copies a version onto its key; metadata and tags come with it unless the headers replace them, and so does the ACL,
 * which CopyObject itself does not copy.
 * @param place { bucket, key, versionId? } of the source
 * @param headers further headers of the request; one without a value is left out
 * @returns the id of the new version, where the answer states it
 */
export async function copyOnto(client, { bucket, key, versionId }, headers, signal) {
  const acl = await sendXml(client, { bucket, key, versionId, query: { acl: '' }, signal }).catch(
    without('AccessDenied', 'NotImplemented'),
  )
  const source = pathOf(bucket, key) + (versionId === undefined ? '' : `?versionId=${uriEncode(versionId)}`)
  const given = Object.entries({ ...headers, 'x-amz-copy-source': source }).filter(([, value]) => value !== undefined)
  const answer = await send(client, { method: 'PUT', bucket, key, headers: Object.fromEntries(given), signal })
  await readXml(answer)
  const made = answer.headers.get('x-amz-version-id') ?? undefined
  if (acl && givesRights(acl)) {
    const copy = { bucket, key, versionId: made }
    await writeDocument(client, copy, 'acl', acl.toString()).catch((error) => {
      throw new ApiError(error.code, `The copy was made, but it has not got the ACL: ${error.message}`, error)
    })
  }
  return made
}

/** True for an ACL that grants something to others than the owner. */
function givesRights(acl) {
  const owner = acl.get('Owner', 'ID')
  const grants = acl.child('AccessControlList')?.all('Grant') ?? []
  return grants.some((grant) => grant.get('Grantee', 'ID') !== owner)
}

/** Headers by which a copy onto itself is refused if another write came since. @param facts of HEAD */
export function unlessWritten({ etag, headers }) {
  return { 'if-match': etag, 'x-amz-copy-source-if-unmodified-since': headers.get('last-modified') }
}
