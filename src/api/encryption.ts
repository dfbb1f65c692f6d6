/** What S3 calls the encryption of an object. */
export type EncryptionOrder = 'AES256'

/** How the bytes of an object are encrypted: an age file, which begins with a header. See docs/encryption.md. */
export interface Encrypted {
  readonly algorithm: EncryptionOrder
  /** Bytes of the header. */
  readonly header: number
}

/** Of a multipart upload whose object is to be encrypted, and whose parts are. */
export interface UploadEncryption {
  readonly algorithm: EncryptionOrder
  /** The key of the parts, sealed. */
  readonly partsKey: string
}
