import { type Context, S3Error } from 'dealgate/plugin'
import pMap from 'p-map'
import { actionsOf, type Column, type ListedObject, type Row } from './columns.js'

/** Decisions at the same time: those by tags and ACLs of objects read records. */
const CONCURRENCY = 16

interface Place {
  readonly bucket: string
  readonly key: string
  /** Absent for the current version. */
  readonly versionId: string | undefined
}

/** Makes a row of each object, without what the caller may not read of it by the action of the column. */
export async function visibleRows(
  context: Context,
  columns: readonly Column[],
  listed: readonly ListedObject[],
  { ofVersions }: { readonly ofVersions: boolean },
): Promise<readonly Row[]> {
  const actions = actionsOf(columns)
  return pMap(
    listed,
    async (one) => {
      const { bucket, key, versionId } = one
      const place = { bucket, key, versionId: ofVersions ? versionId : undefined }
      const hidden = one.object && actions.length > 0 ? await hiddenOf(context, actions, place) : []
      const value = (column: Column) =>
        column.action !== undefined && hidden.includes(column.action) ? null : (column.value(one) ?? null)
      return columns.map(value)
    },
    { concurrency: CONCURRENCY },
  )
}

/**
 * Throws AccessDenied for a column that the caller may not read at this place, which stands for all objects below it:
 * the others would be empty.
 */
export async function requireColumns(
  context: Context,
  columns: readonly Column[],
  place: { readonly bucket: string; readonly key: string },
): Promise<void> {
  const [action] = await hiddenOf(context, actionsOf(columns), { ...place, versionId: undefined })
  if (action === undefined) return
  const names = columns.flatMap((column) => (column.action === action ? [column.name] : []))
  throw new S3Error('AccessDenied', { message: `The fields ${names.join(', ')} need ${action} on the objects.` })
}

/** The actions that the caller does not have. */
async function hiddenOf(context: Context, actions: readonly string[], place: Place): Promise<readonly string[]> {
  // A context of its own: what a decision finds is for no other part of the work.
  const { authorizer } = context.caller ? context.as(context.caller) : context
  const hidden: string[] = []
  for (const action of actions) {
    try {
      await authorizer.requireAction(action, place)
    } catch (error) {
      if (!(error instanceof S3Error) || error.code !== 'AccessDenied') throw error
      hidden.push(action)
    }
  }
  return hidden
}
