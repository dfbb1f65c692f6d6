import type { Ownership } from '../access/decide.js'
import type { Door, Place } from '../access/door.js'
import type { Access, RequireOwner } from '../access/rights.js'
import type { AuthenticateForm } from '../auth/authenticate-form.js'
import type { Caller } from '../auth/caller.js'
import type { Logger } from '../common/log.js'
import type { BucketBirths } from '../gateway/account/bucket-births.js'
import type { Gateway } from '../gateway/gateway.js'
import type { Store } from '../objects/store.js'
import type { Expansion } from '../plugins/forms/expansion.js'
import type { Hooks } from '../plugins/forms/hooks.js'
import type { Authorize } from '../plugins/forms/metadata-actions.js'
import type { OutputMetadata } from '../plugins/forms/output-metadata.js'
import type { StorageClasses } from '../plugins/forms/storage-class.js'
import type { Jobs } from '../plugins/jobs/job.js'
import type { ArchiveAccess } from '../s3/object/restore.js'
import type { BucketSettings } from '../state/records/bucket-settings.js'
import type { State } from '../state/state.js'
import type { FormFacts } from './audit.js'
import type { Limits } from './limits.js'

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
   * access/require-owner.ts. The server calls it before operations with `access: 'owner'`; `settings` and `store` call
   * it before they change data that only this server keeps.
   */
  readonly requireOwner: RequireOwner
  /**
   * Rejects with AccessDenied unless the caller may use the action of a plugin, such as `deal:CreateObjectDeal`: the
   * identity must allow it, by its `actions` and its `policies`, and so must a document of the bucket that grants
   * something to another account than the owner's. An anonymous caller may use none.
   * @param place what the action is about; absent for no bucket
   */
  readonly requireAction: (name: string, place?: Place) => Promise<void>
  /** Decides which metadata that the caller stores with an object may cause payments. */
  readonly authorize: Authorize
}

/** Facts of the server, the same for every request. */
export interface ServerFacts {
  readonly region: string
  /** Object ownership of new buckets. */
  readonly objectOwnership: Ownership
  /** Whether classes that only name a price, such as STANDARD_IA, are kept as labels of objects or refused. */
  readonly storageClassLabels: 'keep' | 'refuse'
  /** Scheme and host of share links. */
  readonly shareUrl: string
  /**
   * Name of the account with this canonical id; undefined for an account of which this process has seen no key pair. S3
   * states no names at all: https://docs.aws.amazon.com/AmazonS3/latest/API/API_Owner.html
   */
  readonly accountName: (canonicalId: string) => string | undefined
  /** The data folder; undefined for a server that was given an open state. */
  readonly data: string | undefined
  /** Number of the process among the workers of the server, from 1; undefined without workers. */
  readonly worker: number | undefined
  /** True once the server has begun to shut down. */
  readonly closing: () => boolean
}

/** Registrations of all plugins. */
export interface Registered {
  readonly hooks: Hooks
  /** Storage classes of plugins, in addition to those that S3 clients may name without effect. */
  readonly storageClasses: StorageClasses
  /** Matches user metadata that plugins add to responses. If a client sends it back, it is not stored. */
  readonly outputMetadata: OutputMetadata
  /** Meanings of values of the parameter `expand`. */
  readonly expansions: readonly Expansion[]
  /** Names of the actions of all plugins, without those of S3. */
  readonly actions: readonly string[]
}

/** Everything that an operation uses in addition to the request. */
export interface Context {
  /** Absent for an anonymous request. Only operations whose `access` allows them receive such requests. */
  readonly caller: Caller | undefined
  /** The gateway, accessed with the caller's account and restricted to the caller's rights. */
  readonly gateway: Gateway
  /** Objects: the gateway's view joined with the records of this proxy. */
  readonly store: Store
  readonly checks: Checks
  /** Decides what this request may do, by the policies and ACLs of buckets and identities. */
  readonly door: Door
  /** An operation changes it only when it is for the owner of the bucket: see state/records/state-of-operation.ts. */
  readonly state: State
  /**
   * Settings of buckets that the gateway cannot hold. Only the owner of a bucket can change them: see
   * state/records/owned-settings.ts.
   */
  readonly settings: BucketSettings
  /** Distinguishes the current bucket of a name from deleted buckets of the same name. */
  readonly births: Pick<BucketBirths, 'now'>
  readonly server: ServerFacts
  readonly limits: Limits
  readonly log: Logger
  readonly plugins: Registered
  /** Presence and restores of objects in archive classes. */
  readonly archive: ArchiveAccess
  /** Durable background jobs, which outlive the request. */
  readonly jobs: Jobs
  /** The gateway, accessed with the server's own account regardless of the caller. */
  readonly own: Pick<Gateway, 'listBuckets' | 'listPolicies'>
  /**
   * Returns the context of another caller, such as the signer of a form's policy. For undefined, an anonymous caller,
   * the gateway's own policies decide about access.
   */
  readonly as: (caller: Caller | undefined) => Context
  /** Identifies the signer of a form's policy document. */
  readonly authenticateForm: AuthenticateForm
  /** Set by an operation that has read a browser form: the audit log records it. */
  form?: FormFacts
}
