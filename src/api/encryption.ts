/**
 * With keys of the server, with a key that has a name, or with a key of the client, of which the server keeps nothing.
 * S3 has no word for the last one: its answers state AES256 in another header.
 */
export type EncryptionAlgorithm = 'AES256' | 'aws:kms' | 'SSE-C'

/** A key of a client, as a request states it. */
export interface CustomerKey {
  /** 32 bytes. */
  readonly key: Buffer
  /** Base64. */
  readonly md5: string
}

/** With which key of the server something is encrypted. */
export interface ServerKey {
  readonly algorithm: 'AES256' | 'aws:kms'
  /** The name of the key, for aws:kms. Absent in an order: that of the bucket's default, else the key of the server. */
  readonly keyId?: string
  /** What S3 calls a bucket key was asked for, for aws:kms. It is stated in answers, and changes nothing here. */
  readonly bucketKey?: true
}

/** What a new object is encrypted with. */
export type EncryptionOrder = ServerKey | { readonly algorithm: 'SSE-C'; readonly customer: CustomerKey }

/** How the bytes of an object are encrypted: an age file, which begins with a header. See docs/encryption.md. */
export interface Encrypted extends Omit<ServerKey, 'algorithm'> {
  readonly algorithm: EncryptionAlgorithm
  /** Bytes of the header. */
  readonly header: number
  /** Neither a record nor the gateway says so, but the bytes alone: their label is lost. */
  readonly unlabelled?: true
}

/** Encryption of a multipart upload: its parts are encrypted, and its object will be. */
export interface UploadEncryption extends Omit<Encrypted, 'header'> {
  /** The key of the parts, sealed. */
  readonly partsKey: string
  /** The header of the object, base64, for SSE-C: the key in it, which only the client opens, is that of the parts. */
  readonly header?: string
}
