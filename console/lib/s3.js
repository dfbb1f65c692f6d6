// Calls of S3 that several screens make. Each takes the client, which `session.value` is, and throws ApiError.
import { ApiError, send, sendXml } from './api.js'
import { headerText, metadataText } from './signer.js'
import { element } from './xml.js'

export async function listBuckets(client, signal) {
  const root = await sendXml(client, { signal })
  return (root.child('Buckets')?.all('Bucket') ?? []).map((bucket) => ({
    name: bucket.get('Name'),
    created: Date.parse(bucket.get('CreationDate')),
  }))
}

/**
 * One page of the objects and folders below a prefix.
 * @param query { prefix, token, after, delimiter, max }: what follows the key `after`; `delimiter` is `/` for folders, undefined for everything below
 * @returns { folders: [prefix], objects: [{ key, size, modified, storageClass, etag }], next }
 */
export async function listObjects(client, bucket, { prefix, token, after, delimiter = '/', max = 1000 }, signal) {
  const query = {
    'list-type': 2,
    'encoding-type': 'url',
    'max-keys': max,
    prefix: prefix || undefined,
    delimiter: delimiter || undefined,
    'continuation-token': token,
    'start-after': after,
  }
  const root = await sendXml(client, { bucket, query, signal })
  return {
    folders: root.all('CommonPrefixes').map((folder) => decoded(folder.get('Prefix'))),
    objects: root.all('Contents').map((object) => ({
      key: decoded(object.get('Key')),
      size: Number(object.get('Size')),
      modified: Date.parse(object.get('LastModified')),
      storageClass: object.get('StorageClass') ?? 'STANDARD',
      etag: object.get('ETag'),
    })),
    next: root.get('NextContinuationToken'),
  }
}

/** A key of an answer with `encoding-type=url`. */
export function decoded(text) {
  return decodeURIComponent(text.replaceAll('+', ' '))
}

/**
 * What HEAD tells about an object. @param place { bucket, key, versionId? }
 * @returns { size, type, modified, etag, storageClass, versionId?, metadata, checksums, headers }
 */
export async function headObject(client, place, signal) {
  const { headers } = await send(client, {
    ...place,
    method: 'HEAD',
    headers: { 'x-amz-checksum-mode': 'ENABLED' },
    signal,
  })
  const all = [...headers].map(([name, value]) => [name, headerText(value)])
  const get = (name) => headers.get(name) ?? undefined
  return {
    size: Number(get('content-length')),
    type: get('content-type'),
    modified: Date.parse(get('last-modified')),
    etag: get('etag'),
    storageClass: get('x-amz-storage-class') ?? 'STANDARD',
    versionId: get('x-amz-version-id'),
    metadata: [...headers].flatMap(([name, value]) =>
      name.startsWith('x-amz-meta-') ? [[name.slice(11), metadataText(value)]] : [],
    ),
    checksums: all.flatMap(([name, value]) =>
      /^x-amz-checksum-(?!type|mode)/.test(name) ? [[name.slice(15).toUpperCase(), value]] : [],
    ),
    headers: new Map(all),
  }
}

/** The sizes of the parts that an object was uploaded in; undefined if it was not. */
export async function readPartSizes(client, place, signal) {
  const sizes = []
  for (let marker = 0; ; ) {
    const headers = {
      'x-amz-object-attributes': 'ObjectParts',
      'x-amz-max-parts': '1000',
      'x-amz-part-number-marker': String(marker),
    }
    const root = await sendXml(client, { ...place, query: { attributes: '' }, headers, signal })
    const parts = root.child('ObjectParts')
    if (parts === undefined) return undefined
    sizes.push(...parts.all('Part').map((part) => Number(part.get('Size'))))
    const next = Number(parts.get('NextPartNumberMarker'))
    if (parts.get('IsTruncated') !== 'true' || !(next > marker)) return sizes
    marker = next
  }
}

/** The SHA-256 of a document in base64, as headers state it. */
export async function checksumOf(body) {
  const bytes = typeof body === 'string' ? new TextEncoder().encode(body) : body
  return base64(new Uint8Array(await crypto.subtle.digest('SHA-256', bytes)))
}

function base64(bytes) {
  return btoa(String.fromCharCode(...bytes))
}

export function base64OfHex(digits) {
  return base64(Uint8Array.from(digits.match(/../g) ?? [], (pair) => Number.parseInt(pair, 16)))
}

/** Reads tags. @param place { bucket, key?, versionId? }; @returns [[name, value]] */
export async function readTags(client, place, signal) {
  const root = await sendXml(client, { ...place, query: { tagging: '' }, signal }).catch(without('NoSuchTagSet'))
  return (root?.child('TagSet')?.all('Tag') ?? []).map((tag) => [tag.get('Key'), tag.get('Value') ?? ''])
}

/** Replaces all tags. */
export async function writeTags(client, place, tags, signal) {
  if (tags.length === 0)
    return void (await send(client, { method: 'DELETE', ...place, query: { tagging: '' }, signal }))
  const set = tags.map(([name, value]) => element('Tag', [element('Key', name), element('Value', value)]))
  await writeDocument(client, { ...place, signal }, 'tagging', element('Tagging', [element('TagSet', set)]))
}

/** Stores a document that configures a bucket or an object. @param place may have further headers and parts of a query */
export async function writeDocument(client, place, query, body, type = 'application/xml') {
  const headers = { ...place.headers, 'content-type': type, 'x-amz-checksum-sha256': await checksumOf(body) }
  await send(client, { ...place, method: 'PUT', query: { ...place.query, [query]: '' }, headers, body })
}

const CHANGED =
  'Somebody else has changed this meanwhile, and nothing was saved: open this screen again, and change what is there now.'

/** Throws ApiError if what a change is based on is not what is there now. */
export function refuseChanged(shown, present) {
  if (JSON.stringify(shown) !== JSON.stringify(present)) throw new ApiError('Changed', CHANGED)
}

/** For `catch`: the absence of a document is no failure. */
export function without(...codes) {
  return (error) => {
    if (codes.includes(error.code)) return undefined
    throw error
  }
}

/** True for a storage class whose bytes can be read at once; of others, a read may begin a restore, which may cost. */
export function isAtHand(storageClass) {
  return /^(STANDARD|STANDARD_IA|ONEZONE_IA|REDUCED_REDUNDANCY|INTELLIGENT_TIERING|GLACIER_IR)$/.test(storageClass)
}
