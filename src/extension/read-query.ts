import { S3Error } from '../errors/s3-error.js'
import { wholeNumber } from '../operations/common/numbers.js'
import { refuseVersion } from '../operations/common/version.js'
import type { S3Request } from '../request/s3-request.js'
import { invalidArgument, normalized } from './names.js'
import { fieldsNode, fromText } from './read-text.js'
import type { ObjectShape, Shape } from './shape.js'

/** Parameters that every call knows. */
export const FRAME_PARAMETERS = ['format', 'max-items', 'continuation-token', 'raw', 'expand', 'versionId'] as const

const MAX_ITEMS = 1000

export interface FrameQuery {
  /** Items of a page, 1 to 1000. */
  readonly maxItems: number
  readonly token: string | undefined
  readonly raw: boolean
}

/** Throws InvalidArgument. */
export function readFrameQuery({ query }: Pick<S3Request, 'query'>): FrameQuery {
  refuseVersion(query)
  return {
    maxItems: wholeNumber('max-items', query.get('max-items'), MAX_ITEMS, 1, MAX_ITEMS),
    token: query.get('continuation-token') || undefined,
    raw: readRaw(query.get('raw')),
  }
}

function readRaw(value: string | undefined): boolean {
  if (value === undefined || value === '0' || value === 'false') return false
  if (value === '' || value === '1' || value === 'true') return true
  throw invalidArgument('raw', 'must be 0 or 1', value)
}

/**
 * The call's own parameters, as its schema wants them. What is nobody's and could have been meant for the call is refused: a filter that is misspelt must not be passed
 * over. Throws InvalidArgument.
 * @param subresource whose value must be empty
 */
export function readQuery(
  { query }: Pick<S3Request, 'query'>,
  shape: ObjectShape & Shape,
  subresource?: string,
): unknown {
  const own: (readonly [string, string])[] = []
  for (const [name, value] of query.entries) {
    if (name === subresource) {
      if (value !== '')
        throw new S3Error('InvalidArgument', {
          message: `${name} takes no value: send ?${name}=`,
          fields: { ArgumentName: name, ArgumentValue: value.slice(0, 100) },
        })
    } else if (shape.names.has(normalized(name))) {
      // As with S3's own (`prefix=`), nothing is asked for by what is empty.
      if (value !== '') own.push([name, value])
    } else if (!isFrames(name) && !/^x-/i.test(name)) throw unknown(name, shape)
  }
  return fromText(shape, fieldsNode(own))
}

function isFrames(name: string): boolean {
  return FRAME_PARAMETERS.some((known) => known === name)
}

function unknown(name: string, { members }: ObjectShape): S3Error {
  const known = [...members.keys(), ...FRAME_PARAMETERS]
  return invalidArgument(name, `is no parameter of this call: known are ${known.join(', ')}`)
}
