// Copies of an object onto its own key, by which a version becomes current again and metadata and class change; and moves,
// which are a copy and a removal.
import { ApiError, readXml, send, sendXml } from './api.js'
import { deleteObjects } from './delete.js'
import { headObject, listObjects, without, writeDocument } from './s3.js'
import { isReachable, pathOf, uriEncode } from './signer.js'

/** Classes that only name a price: a copy has that of its request, and `STANDARD` without one. */
export const LABELS = ['STANDARD_IA', 'ONEZONE_IA', 'INTELLIGENT_TIERING', 'REDUCED_REDUNDANCY']

const REDIRECT = 'x-amz-website-redirect-location'
const ENCRYPTION = ['x-amz-server-side-encryption', 'x-amz-server-side-encryption-aws-kms-key-id']

/** The class by which a copy of an object keeps its own; an archive class is that of one version and its deals. */
export function keptClass(storageClass) {
  return LABELS.includes(storageClass) ? storageClass : undefined
}

/**
 * Copies a version onto its key, with its metadata, tags, class, redirect, encryption and rights, of which CopyObject itself
 * keeps the first two alone.
 * @param place { bucket, key, versionId? } of the source
 * @param facts of its HEAD
 * @param headers what is other in the copy; one that is undefined is left out
 * @returns the id of the new version, where the answer states it
 */
export async function copyOnto(client, place, facts, headers, signal) {
  const to = { bucket: place.bucket, key: place.key }
  return (await copy(client, place, to, { ...keptHeaders(facts), ...headers }, signal)).versionId
}

function keptHeaders({ storageClass, headers }) {
  const kept = [REDIRECT, ...ENCRYPTION].map((name) => [name, headers.get(name)])
  return { ...Object.fromEntries(kept), 'x-amz-storage-class': keptClass(storageClass) }
}

/** @returns { versionId?, etag } of the copy */
async function copy(client, from, to, headers, signal) {
  const { bucket, key, versionId } = from
  const source = pathOf(bucket, key) + (versionId === undefined ? '' : `?versionId=${uriEncode(versionId)}`)
  // The rights of an object belong to its bucket; those of an object without an address cannot be read.
  const acl = to.bucket === bucket && isReachable(key) ? await aclOf(client, from, signal) : undefined
  const given = Object.entries({ ...headers, 'x-amz-copy-source': source }).filter(([, value]) => value !== undefined)
  const answer = await send(client, { method: 'PUT', ...to, headers: Object.fromEntries(given), signal })
  const root = await readXml(answer)
  const made = answer.headers.get('x-amz-version-id') ?? undefined
  if (acl && givesRights(acl))
    await writeDocument(client, { ...to, versionId: made }, 'acl', acl.toString()).catch((error) => {
      throw new ApiError(error.code, `The copy was made, but it has not got the ACL: ${error.message}`, error)
    })
  return { versionId: made, etag: root?.get('ETag') }
}

function aclOf(client, place, signal) {
  const read = sendXml(client, { ...place, query: { acl: '' }, signal })
  return read.catch(without('AccessDenied', 'NotImplemented'))
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

/**
 * Moves an object: a copy, and then the removal of what was copied, never of what somebody else has stored meanwhile.
 * @param from { bucket, key, etag? }: of an `etag`, the object is moved only as long as it has it
 * @param to { bucket, key }
 * @param options { replace }: whether an object that is there already is replaced
 * @returns the ETag of the copy
 */
export async function moveObject(client, from, to, { replace }, signal) {
  const facts = await factsOf(client, from, signal)
  if (from.etag !== undefined && from.etag !== facts.etag) throw written(from, 'and keeps its name')
  const kept = keptHeaders(facts)
  // What encrypts the objects of another bucket is its own affair.
  if (to.bucket !== from.bucket) for (const name of ENCRYPTION) delete kept[name]
  const conditions = {
    'x-amz-copy-source-if-match': facts.etag,
    ...(!replace && { 'if-none-match': '*' }),
  }
  const { etag } = await copy(client, from, to, { ...kept, ...conditions }, signal).catch((error) => {
    if (error.code !== 'PreconditionFailed') throw error
    throw error.fields.Condition === 'If-None-Match'
      ? new ApiError('AlreadyExists', `${to.key} exists already.`, error)
      : written(from, 'and keeps its name')
  })
  // Not by its address: a browser could not request the address of every key.
  const { key } = from
  const [failed] = (await deleteObjects(client, from.bucket, [{ key, etag: facts.etag }], {}, signal)).failed
  if (failed?.code === 'PreconditionFailed') throw written(from, `after it was copied to ${to.key}: both are there now`)
  if (failed) throw new ApiError(failed.code, `${to.key} is there, but ${key} could not be deleted: ${failed.message}`)
  return etag
}

/** HEAD of an object, or of what has no address the little that a list tells. */
async function factsOf(client, { bucket, key }, signal) {
  if (isReachable(key)) return headObject(client, { bucket, key }, signal)
  const { objects } = await listObjects(client, bucket, { prefix: key, delimiter: '', max: 1 }, signal)
  if (objects[0]?.key !== key) throw new ApiError('NoSuchKey', `${key} is not there.`)
  return { ...objects[0], headers: new Map() }
}

function written({ key }, rest) {
  return new ApiError('PreconditionFailed', `${key} was written by somebody else meanwhile, ${rest}.`)
}
