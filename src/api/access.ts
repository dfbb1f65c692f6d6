import type { S3Error } from '../../common/errors/s3-error.js'
import type { RequestHead } from './request.js'

export type Group = 'AllUsers' | 'AuthenticatedUsers' | 'LogDelivery'

export type Permission = 'READ' | 'WRITE' | 'READ_ACP' | 'WRITE_ACP' | 'FULL_CONTROL'

/** An account by its canonical id, or a predefined group. */
export type Grantee = { readonly id: string } | { readonly group: Group }

export interface Grant {
  readonly grantee: Grantee
  readonly permission: Permission
}

/** An access control list of a bucket or an object. `owner` is a canonical id. */
export interface Acl {
  readonly owner: string
  readonly grants: readonly Grant[]
}

export type ObjectAcl = Acl

export type Ownership = 'BucketOwnerEnforced' | 'BucketOwnerPreferred' | 'ObjectWriter'

/** The account that owned the bucket when a document was stored; the server had just asked the gateway. */
export interface BucketOwner {
  /** Canonical id. */
  readonly owner: string
  /** Access key id of a key pair of that account: by it the server finds the account again. '' for the server's own. */
  readonly by: string
}

/** The documents of one bucket. */
export interface BucketDocuments extends BucketOwner {
  /** Absent without a policy. */
  readonly policy?: {
    readonly text: string
    /** The gateway has rules that say the same, and decides by them: another program may have changed them since. */
    readonly delegated: boolean
  }
  readonly acl?: Acl
  readonly ownership: Ownership
}

/** What a request says besides its head. */
export interface Facts {
  /** Canonical id of the owner of the bucket. */
  readonly owner?: string
  /** Tags of the object as it is stored. */
  readonly stored?: readonly Tag[]
  /** Tags that the request sets. */
  readonly requested?: readonly Tag[]
  /** Headers of a form. */
  readonly headers?: RequestHead['headers']
  /** The prefix of a listing that the request does not ask for: its query says nothing about it. */
  readonly listed?: string
  /** See `Question.ofNew`. */
  readonly ofNew?: boolean
  /** The version that the action is about; absent for the current one. */
  readonly versionId?: string
  readonly now?: number
}

/** One action on one resource. */
export interface RequestedAction {
  readonly action: string
  /** Absent for an action on no bucket. */
  readonly bucket?: string | undefined
  readonly key?: string | undefined
  /** The prefix of a listing. */
  readonly prefix?: string | undefined
  readonly more?: Pick<Facts, 'requested' | 'headers' | 'listed' | 'ofNew' | 'versionId'> | undefined
}

/** What an action is asked on; empty for no bucket. */
export type ActionResource = Omit<RequestedAction, 'action'>

/** Decides what one request may do. The one place that asks policies and ACLs. */
export interface Authorizer {
  /**
   * Decides several actions of one request together. Resolves if the caller may do all of them, and also if no document
   * says so: then the caller's own account decides, as for a bucket without documents.
   * @throws S3Error AccessDenied, and ServiceUnavailable when the documents cannot be read
   */
  decide(...asked: readonly RequestedAction[]): Promise<void>
  /**
   * Throws AccessDenied unless the policies of the identity and of the bucket let the caller use the action of a
   * plugin: it may spend, so in the bucket of another account a document must grant it by the name of the plugin.
   * Grants nothing.
   * @param place with `versionId` that of a version; an action of S3 is then the one that S3 has for versions
   */
  requireAction(action: string, place: ActionResource & { readonly versionId?: string | undefined }): Promise<void>
  /**
   * Throws AccessDenied where the caller may use the action only under conditions of a policy: what the caller then
   * gets outlives the request and drops them. To be called after the action was decided.
   */
  requireLasting(asked: RequestedAction): Promise<void>
  /**
   * Resolves to the error for a request that was refused with `failure`: NoSuchBucket for an unsigned one where there
   * is no bucket, NoSuchKey for a read of a key that is not there where the caller may list it, and else `failure`.
   */
  missing(failure: S3Error, action: string | undefined, place: ActionResource): Promise<S3Error>
  /**
   * True if a decision of this request has granted the action to a caller who does not own the bucket.
   * @param versionId as it was asked; absent for the current version
   */
  granted(action: string, bucket: string, key?: string, versionId?: string): boolean
  /** True if documents of the bucket may grant something to this caller, who does not own it. */
  opened(bucket: string): Promise<boolean>
  /** True if the policy of the bucket can allow everybody the action on some key. No ACL allows everybody a write. */
  canOpen(bucket: string, action: string): Promise<boolean>
  /** The owner to record with a document of the bucket: to be called after the owner was checked. */
  ownerOf(bucket: string): Promise<BucketOwner>
  /** The documents of the bucket; undefined for none. */
  documents(bucket: string): Promise<BucketDocuments | undefined>
  /** Reason of the last decision, for the log; undefined if there was none. */
  readonly reason: string | undefined
}

export type Access = 'read' | 'write'

/**
 * The right that an operation needs. It is checked by the head of the request before the body can be read, so that for
 * a refused caller nothing is read, stored or parsed, and no `100 Continue` is sent.
 */
export type NeededRight =
  /** A right to the key. */
  | { readonly key: Access }
  /** Each of these rights to every key of the bucket. */
  | { readonly bucket: readonly Access[] }
  /** A right to at least one key of the bucket. The body names the keys, and each of them is checked then. */
  | { readonly some: Access | 'any' }
  /** The body authenticates the caller, and only the part that does so is read first. */
  | 'form'

/**
 * Resolves if the caller's gateway account owns the bucket, or a document of the bucket has granted this request what
 * the owner may do; `instead` is an action on a key that suffices. Throws S3Error NoSuchBucket, AccessDenied, or the
 * error of the gateway call.
 */
export type RequireOwner = (
  bucket: string,
  instead?: { readonly action: string; readonly key: string },
) => Promise<void>

/**
 * Determines which metadata of an object may authorize payments. The result is stored with the object, because it
 * cannot be found out later whether the caller held the right when the object was stored.
 * @param metadata metadata of the object to store, by lower-case name without prefix
 * @param place the object to store
 * @param before for metadata that the caller copies: the result of the source. A copy adds no right
 * @returns undefined if there is nothing to store
 */
export type Authorize = (
  metadata: Readonly<Record<string, string>>,
  place: ActionResource,
  before?: { readonly authorized?: Authorized | undefined },
) => Promise<Authorized | undefined>

/**
 * Names of metadata stored by a caller who held the action that the plugin declares for the name
 * (`Plugin.metadataActions`). Other metadata of those names, and all metadata of objects stored by an earlier version,
 * comes from callers without it.
 */
export type Authorized = Readonly<Record<string, Authorization>>

/** The caller who stored such metadata. */
export interface Authorization {
  readonly accessKeyId: string
  /**
   * Access key of the gateway account that the identity acts as; '' for the server's own. The action concerns what this
   * account pays.
   */
  readonly account: string
}

export interface Tag {
  readonly key: string
  readonly value: string
}

/** Checks of what the caller may do. */
export interface Checks {
  /**
   * Throws AccessDenied unless the caller may read or write every key of the bucket; always throws for an anonymous
   * caller. Guards data of the whole bucket in `state`, such as rules and tags, which no gateway call guards. Does not
   * check that the bucket exists.
   */
  readonly requireWholeBucket: (bucket: string, access: Access) => void
  /** Like requireWholeBucket, for data of one key. */
  readonly requireKey: (bucket: string, key: string, access: Access) => void
  /**
   * Throws AccessDenied unless the caller has this access to at least one key of the bucket, or with `any` any access
   * at all; always throws for an anonymous caller.
   */
  readonly requireSome: (bucket: string, access: Access | 'any') => void
  /**
   * Throws NoSuchBucket, or AccessDenied unless the caller's gateway account owns the bucket: see
   * access/rights.ts. The server calls it before operations with `access: 'owner'`; `settings` and `store` call
   * it before they change data that only this server keeps.
   */
  readonly requireOwner: RequireOwner
  /**
   * Rejects with AccessDenied unless the caller may use the action of a plugin, such as `deal:CreateObjectDeal`: the
   * identity must allow it, by its `actions` and its `policies`, and so must a document of the bucket that grants
   * something to another account than the owner's. An anonymous caller may use none.
   * @param place what the action is about; absent for no bucket
   */
  readonly requireAction: (name: string, place?: ActionResource) => Promise<void>
  /**
   * Rejects with AccessDenied unless the bucket has the owner that a request or a document expects.
   * @param expected canonical id
   * @param name of the header or element that states it
   */
  readonly requireBucketOwner: (bucket: string, expected: string, name: string) => Promise<void>
  /** Decides which metadata that the caller stores with an object may cause payments. */
  readonly authorize: Authorize
}
