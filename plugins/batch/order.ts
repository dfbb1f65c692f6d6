import type { RequestOwner } from 'dealgate/plugin'

/** What a batch job does to each object, as it is on record. */
export type BatchOperation =
  | { readonly name: 'Delete'; readonly bypassGovernance?: boolean }
  | {
      readonly name: 'Copy'
      readonly targetBucket: string
      /** Comes before the key. */
      readonly targetPrefix: string
      /** Headers of CopyObject by lower-case name. */
      readonly headers: Readonly<Record<string, string>>
    }
  | { readonly name: 'Tag'; readonly tags: readonly TagPair[]; readonly replace: boolean }
  | {
      readonly name: 'Untag'
      /** Absent: all tags. */
      readonly keys?: readonly string[]
    }
  | { readonly name: 'Acl'; readonly headers: Readonly<Record<string, string>> }
  | { readonly name: 'Restore'; readonly days?: number; readonly tier?: string }
  | { readonly name: 'Archive'; readonly storageClass: string }
  | { readonly name: 'Deal' | 'Renew'; readonly terms: Readonly<Record<string, string | number | boolean>> }
  | { readonly name: 'Retain'; readonly mode: string; readonly until: string; readonly bypassGovernance?: boolean }
  | { readonly name: 'LegalHold'; readonly status: 'ON' | 'OFF' }
  | { readonly name: 'Checksum'; readonly algorithm?: string }
  | { readonly name: 'Encrypt' | 'Rewrap' }

export type OperationName = BatchOperation['name']

export interface TagPair {
  readonly key: string
  readonly value: string
}

export const MANIFEST_FORMATS = ['S3BatchOperations_CSV_20180820', 'S3InventoryReport_CSV_20161130'] as const

/** An object that lists the objects of a job. */
export interface ManifestSource {
  readonly format: (typeof MANIFEST_FORMATS)[number]
  /** The columns of a CSV manifest; those of an inventory are in its manifest.json. */
  readonly fields: readonly string[]
  readonly bucket: string
  readonly key: string
  readonly versionId?: string
  /** Without quotes. Absent: that of the object when the job begins to read it. */
  readonly etag?: string
}

/** Chooses the objects of a job by the listing of a bucket. Several values of a member: any of them. */
export interface FilterSource {
  readonly bucket: string
  readonly prefixes: readonly string[]
  readonly suffixes: readonly string[]
  readonly substrings: readonly string[]
  /** ms since 1970 */
  readonly createdAfter?: number
  readonly createdBefore?: number
  /** Bytes, exclusive. */
  readonly sizeGreaterThan?: number
  readonly sizeLessThan?: number
  readonly storageClasses: readonly string[]
  /** Tags that an object must all have. */
  readonly tags: readonly { readonly key: string; readonly value?: string }[]
  /** States of the newest deal; `None` for objects without one. */
  readonly dealStates: readonly string[]
  /** Objects whose deal ends before this time, ms since 1970. */
  readonly dealEndsBefore?: number
  readonly versions: 'Current' | 'Noncurrent' | 'All'
  /** Canonical id of the account that must own the bucket; absent for any. */
  readonly owner?: string
}

export interface ReportOrder {
  readonly bucket: string
  /** '' or without a slash at its end. */
  readonly prefix: string
  readonly scope: 'AllTasks' | 'FailedTasksOnly'
  /** Canonical id of the account that must own the bucket; absent for any. */
  readonly owner?: string
}

/** The input of a batch job. */
export interface BatchOrder {
  readonly operation: BatchOperation
  readonly manifest?: ManifestSource
  readonly filter?: FilterSource
  readonly report?: ReportOrder
  readonly description: string
  /** When it is created, as its tags: both may change. */
  readonly priority: number
  readonly tags: readonly TagPair[]
  readonly confirmationRequired: boolean
  readonly dryRun: boolean
  /** Requests per second; absent for the bound of the server alone. */
  readonly rate?: number
  readonly client: RequestOwner['client']
  /** What S3 Control describes of a job that it created: markup of its elements. */
  readonly control?: Readonly<Record<string, string>>
}

/** Bucket, key and, for one version of it, its id. */
export type Row = readonly [bucket: string, key: string, versionId?: string]

/** Why a task has failed, or that it has not. */
export interface TaskResult {
  readonly ok: boolean
  /** HTTP status. */
  readonly status: number
  readonly code?: string
  readonly message?: string
}

export interface FailedRow {
  readonly Bucket: string
  readonly Key: string
  readonly VersionId?: string
  readonly ErrorCode: string
  readonly Message: string
}
