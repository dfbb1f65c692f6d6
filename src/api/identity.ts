/** A gateway account that identities act as. */
export interface GatewayAccount {
  readonly accessKey: string
  readonly secretKey: string
}

/** Grants an identity access to keys of buckets. */
export interface Right {
  /** Bucket name. A final `*` matches any suffix; `*` alone matches every bucket. */
  readonly bucket: string
  /** Restricts the right to keys with this prefix; default every key. */
  readonly prefix?: string
  readonly access: 'read' | 'write' | 'readwrite'
}

/** An S3 key pair and its rights. */
export interface Identity {
  readonly accessKeyId: string
  readonly secretAccessKey: string
  /** The gateway account that the identity acts as; default the proxy's own. */
  readonly account?: GatewayAccount
  /** Access to buckets and keys. Without it the identity has all rights of the account. */
  readonly rights?: readonly Right[]
  /**
   * Requires `rights`. Plugin calls that the identity may make in addition to those that only read what its rights
   * cover, such as `deal:CreateObjectDeal`; a final `*` matches any suffix. Without `rights` it may make every call.
   */
  readonly actions?: readonly string[]
  /**
   * Policy documents, in the language of bucket policies without Principal. The identity may do only what they allow;
   * where it also has `rights`, both must allow. Absent: `rights` alone decide.
   */
  readonly policies?: readonly Readonly<Record<string, unknown>>[]
  /**
   * Identifies the secret key of the account, for an identity without one of its own: what is kept for it must not
   * survive another key. Only the server itself sets it.
   */
  readonly accountKeyHash?: string
  /** The session of temporary credentials that signed the request. Only the server itself sets it. */
  readonly session?: Session
}

/** What temporary credentials were issued for. */
export interface Session {
  /** Name that its user chose; the temporary access key id for a session of a key pair. */
  readonly name: string
  /** ARN of the role that its user asked for, which decides nothing; absent for a session of a key pair. */
  readonly role?: string
  /** Policy document: the session may do only what this, too, allows. */
  readonly policy?: Readonly<Record<string, unknown>>
  /**
   * With `policy`. The policies of other sessions that have had the job run again, or go on: each must allow, too. Only
   * jobs have them.
   */
  readonly narrowed?: readonly Readonly<Record<string, unknown>>[]
  /** End of the credentials, ms since 1970; absent for a job, which may outlive them. */
  readonly expires?: number
}

/** Looks up an S3 key pair. Returns undefined for an unknown access key id. */
export type Credentials = (accessKeyId: string) => Identity | undefined | Promise<Identity | undefined>

/** The tokens of an OpenID Connect issuer, which STS exchanges for credentials with the rights of a key pair. */
export interface WebIdentities {
  /** The claim `iss` of its tokens. */
  readonly issuer: string
  /** Verifies a token, and returns what it gives its holder, or why it is not accepted. */
  verify(token: string): Promise<WebIdentity | RefusedToken>
}

export interface WebIdentity {
  readonly subject: string
  readonly audience: string
  /** Access key ids of the key pairs whose rights the holder may have, the first choice first; may be empty. */
  readonly keys: readonly string[]
}

export interface RefusedToken {
  /** A sentence for the client, without any part of the token. */
  readonly problem: string
  /** `later`: the issuer could not be asked. */
  readonly kind: 'invalid' | 'expired' | 'later'
}

/** How to read and verify the body of an authenticated request. */
export type PayloadMode =
  /** x-amz-content-sha256 holds the lower-case hex digest of the body. */
  | { readonly kind: 'signed'; readonly sha256: string }
  /** UNSIGNED-PAYLOAD, or a presigned request that does not pin a hash. */
  | { readonly kind: 'unsigned' }
  /** aws-chunked with or without chunk signatures, with or without trailer. */
  | { readonly kind: 'chunked'; readonly signing: ChunkSigning | undefined; readonly trailer: boolean }
  /** No x-amz-content-sha256: the authenticator has read the body and verified the signature with its actual hash. */
  | { readonly kind: 'buffered'; readonly bytes: Buffer }

/**
 * Inputs for verifying the chain of chunk signatures; see "Signature calculations: transferring payload in multiple
 * chunks".
 */
export interface ChunkSigning {
  readonly key: Buffer
  readonly seedSignature: string
  /** The timestamp of the request, as signed: 20130524T000000Z. */
  readonly date: string
  /** 20130524/us-east-1/s3/aws4_request */
  readonly scope: string
}

/**
 * Reads the complete body of a request before its signature is verified.
 * Rejects with an S3Error if the body exceeds the reader's bound.
 */
export type ReadWholeBody = () => Promise<Buffer>

/** The caller of a request, authenticated by a verified signature. */
export interface Caller {
  readonly identity: Identity
  /** True for a presigned URL. */
  readonly presigned: boolean
  /** Absent if no request was signed: jobs. */
  readonly signatureVersion?: SignatureVersion
  /** Where the signature was. Absent if no request was signed: jobs. */
  readonly authType?: AuthType
  readonly payload: PayloadMode
  /** The signature and the headers it covers. Absent if no request was signed: form policies, jobs. */
  readonly proof?: Proof
}

/** The values of the condition key `s3:signatureversion`. */
export type SignatureVersion = 'AWS' | 'AWS4-HMAC-SHA256'

/** The values of the condition key `s3:authType`. */
export type AuthType = 'REST-HEADER' | 'REST-QUERY-STRING' | 'POST'

export interface Proof {
  /**
   * Lower-case names of the signed headers. A signature of version 4 also covers the whole query; one of version 2
   * covers the sub-resources alone, and never the body: calls of extensions refuse it (refuseVersion2).
   */
  readonly headers: readonly string[]
  /**
   * Lower-case hex of version 4, base64 of version 2. A request that is re-sent unchanged has the same signature; no
   * other request that this identity signs at another second does.
   */
  readonly signature: string
}

/** The fields of a form, by lower-case name. */
export interface SignedFields {
  get(name: string): string | undefined
}

/**
 * Identifies the signer of a form's policy document. Resolves to undefined for a form that has neither a policy nor
 * a signature. The signature covers the policy alone: the policy restricts the other fields, and the caller checks
 * its expiration.
 * @throws S3Error if the form has a signature that is malformed, expired or wrong
 */
export type AuthenticateForm = (fields: SignedFields) => Promise<Caller | undefined>
