import type { Encrypted } from '../api/encryption.js'
import type { BodyOptions } from '../api/request.js'
import type { PutRequest, Source } from '../api/store.js'
import { opaqueEtag } from '../gateway/object-facts.js'
import { defaultChecksum } from './default-checksum.js'
import type { NewHeader } from './encryption/age-header.js'
import { sealedLength, sealedSource } from './encryption/sealed-source.js'
import type { StoreDeps } from './store-deps.js'

/** What a write makes of its content, decided before the first byte is read. */
export interface WritePlan {
  /** The object shows a folder at a gateway that cannot hold bytes under such a key. */
  readonly marker: boolean
  /** How the gateway gets the content, if not as it is. */
  readonly encrypted: Encrypted | undefined
  /** The ETag, unless it is the MD5 of the content. */
  readonly etag: string | undefined
  /** What is computed of the content while it passes. */
  readonly digests: BodyOptions & { readonly md5: boolean }
  /** With the key of the file that the content becomes: `wipeKey` clears it. */
  readonly header: NewHeader | undefined
}

/** Throws S3Error for an encryption that this server cannot do. */
export async function planWrite({ gateway, encryption }: StoreDeps, request: PutRequest): Promise<WritePlan> {
  const { bucket, key } = request
  const features = await gateway.features()
  const marker = key.endsWith('/') && !features.anyKey
  const sealed =
    marker || request.sealed ? undefined : await encryption.seal({ bucket, key }, request.encryption, request.uploadId)
  const encrypted = request.sealed ?? sealed?.encrypted
  // A caller with an own key keeps secret what the content is: its MD5 would show whether it is that of a known file.
  const etag = request.etag ?? (encrypted && encrypted.algorithm !== 'AES256' ? opaqueEtag() : undefined)
  const md5 = (encrypted !== undefined || !features.objectHead) && etag === undefined
  // This server computes no checksum of bytes whose checksum is given, nor of those that are stored again as they are.
  const isGiven = request.checksum !== undefined || request.sealed !== undefined
  const checksum = request.wantChecksum ?? (isGiven ? undefined : defaultChecksum(encrypted))
  return { marker, encrypted, etag, digests: { md5, checksum }, header: sealed?.header }
}

/** The bytes as the gateway gets them. */
export function plannedSource({ header }: WritePlan, source: Source): Source {
  return header ? sealedSource(source, header) : source
}

/** Most bytes that the gateway gets of a content of at most `maxBytes`. */
export function plannedLength({ header }: WritePlan, maxBytes: number): number {
  return header ? sealedLength(header, maxBytes) : maxBytes
}

/** Clears the key of the file. Called at the end of each write, successful or not. */
export function wipeKey({ header }: WritePlan): void {
  header?.fileKey.fill(0)
}
