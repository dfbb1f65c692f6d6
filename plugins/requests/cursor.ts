import { S3Error } from 'dealgate/plugin'

/** Where a reader goes on: for each process, by its name, the number of the last request that it has read. */
type Cursor = ReadonlyMap<string, number>

/** Processes of a state that a cursor names at most: those that were heard of last. */
const MAX_PROCESSES = 100

export function writeCursor(cursor: Cursor): string {
  return [...cursor]
    .slice(-MAX_PROCESSES)
    .map(([process, number]) => `${process}.${number.toString(36)}`)
    .join('-')
}

/** Throws S3Error InvalidArgument. */
export function readCursor(text: string): Cursor {
  const parts = text.split('-')
  if (parts.length > MAX_PROCESSES) throw invalid()
  return new Map(
    parts.map((part) => {
      const [, process = '', number = ''] = /^([0-9a-f]{8})\.([0-9a-z]{1,11})$/.exec(part) ?? []
      if (process === '') throw invalid()
      return [process, Number.parseInt(number, 36)] as const
    }),
  )
}

function invalid(): S3Error {
  return new S3Error('InvalidArgument', {
    message: 'The cursor must be that of an answer of this call.',
    fields: { ArgumentName: 'after' },
  })
}
