import type { StoredObject } from './store.js'

/** A column that a plugin adds to inventories of buckets. */
export interface InventoryField {
  /** Name in the configuration of an inventory: `x-` and a name in PascalCase, such as `x-DealState`. */
  readonly name: string
  /** `integer`: at most 2^53 - 1. `time`: ms since 1970. */
  readonly type: 'text' | 'integer' | 'time'
  /** One sentence for the documentation. */
  readonly summary: string
}

/** Values by the name of their field. An absent one is null in the inventory. */
export type InventoryValues = Readonly<Record<string, string | number | undefined>>

/** Columns of inventories whose values a plugin knows. */
export interface InventoryFields {
  readonly fields: readonly InventoryField[]
  /**
   * The action by which a client reads the same of one object: `deal:ListObjectDeals`. The fields of an object are
   * empty where policies do not let whose inventory it is use the action on the object. Absent: who lists the bucket
   * sees them.
   */
  readonly action?: string
  /**
   * The values of each object, in their order. Called once for each page of an inventory: at most 1000 objects of one
   * bucket, also versions that are not current. The server decides who sees the values. Throws S3Error.
   */
  read(objects: readonly StoredObject[]): Promise<readonly InventoryValues[]>
}
