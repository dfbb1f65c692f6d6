import type { ChecksumAlgorithm } from '../common/checksums.js'

/** The gateway account that an identity acts as. */
export interface GatewayAccount {
  readonly accessKey: string
  readonly secretKey: string
}

/** What an identity may do with some keys of some buckets. */
export interface Right {
  /** A bucket's name; `*` at its end stands for any rest, `*` alone for every bucket. */
  readonly bucket: string
  /** Only keys that begin so; default every key. */
  readonly prefix?: string
  readonly access: 'read' | 'write' | 'readwrite'
}

/** An S3 key pair and what it may do. */
export interface Identity {
  readonly accessKeyId: string
  readonly secretAccessKey: string
  /** The gateway account it acts as; default the proxy's own. */
  readonly account?: GatewayAccount
  /** Absent: everything that the account may. Present: nothing else. */
  readonly rights?: readonly Right[]
  /**
   * With `rights`: which calls of plugins it may make, beside those that read what its rights cover: `deal:CreateObjectDeal`; `*` at the end stands for any rest. Without
   * `rights` it may make all.
   */
  readonly actions?: readonly string[]
}

/** Looks up an S3 key pair. Resolves undefined for an unknown access key id. */
export type Credentials = (accessKeyId: string) => Identity | undefined | Promise<Identity | undefined>

/** How the body of an authenticated request is to be read and verified. */
export type PayloadMode =
  /** x-amz-content-sha256 holds the lower-case hex digest of the body. */
  | { readonly kind: 'signed'; readonly sha256: string }
  /** UNSIGNED-PAYLOAD, or a presigned request that pins no hash. */
  | { readonly kind: 'unsigned' }
  /** aws-chunked with or without chunk signatures, with or without trailer. */
  | { readonly kind: 'chunked'; readonly signing: ChunkSigning | undefined; readonly trailer: boolean }
  /** No x-amz-content-sha256: the body was read whole and its real hash went into the signature. */
  | { readonly kind: 'buffered'; readonly bytes: Buffer }

/** What verifying the chain of chunk signatures needs; see "Signature calculations: transferring payload in multiple chunks". */
export interface ChunkSigning {
  readonly key: Buffer
  readonly seedSignature: string
  /** The timestamp of the request, as signed: 20130524T000000Z. */
  readonly date: string
  /** 20130524/us-east-1/s3/aws4_request */
  readonly scope: string
}

/** Reads the whole body of a request before its signature is verified. Rejects with an S3Error if it is larger than the reader's bound. */
export type ReadWholeBody = () => Promise<Buffer>

/** Who makes a request, vouched for by a verified signature. */
export interface Caller {
  readonly identity: Identity
  /** True for a presigned URL. */
  readonly presigned: boolean
  readonly payload: PayloadMode
}

export type { ChecksumAlgorithm }
