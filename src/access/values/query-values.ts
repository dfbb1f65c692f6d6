import { S3Error } from '../../../common/errors/s3-error.js'
import { pageSize, type Query } from '../../../common/query.js'

/** True for `null`, and for a text of the form that ids of versions have. */
export function isVersionId(id: string): boolean {
  return id === 'null' || /^[0-9a-f]{32}$/.test(id)
}

/** Throws InvalidArgument for a text that is the id of no version. */
export function readVersionId(text: string, name = 'versionId'): string {
  if (isVersionId(text)) return text
  throw new S3Error('InvalidArgument', {
    message: 'Invalid version id specified',
    fields: { ArgumentName: name, ArgumentValue: text.slice(0, 200) },
  })
}

/** The parameters of a listing that condition keys and the operation both read. */
export type ListParameter = 'prefix' | 'delimiter' | 'max-keys'

/**
 * Returns what the listing reads; undefined for the default. An empty delimiter is none, and a page has at most 1000
 * entries. Throws InvalidArgument.
 */
export function listValue(query: Query, name: ListParameter): string | undefined {
  const text = query.get(name)
  if (name === 'prefix') return text
  if (text === undefined || text === '') return undefined
  return name === 'delimiter' ? text : String(pageSize(name, text))
}
