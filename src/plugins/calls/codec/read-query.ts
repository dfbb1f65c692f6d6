import { S3Error } from '../../../common/errors/s3-error.js'
import { wholeNumber } from '../../../request/numbers.js'
import { repeatedParameter } from '../../../request/query.js'
import type { S3Request } from '../../../request/s3-request.js'
import { refuseVersion } from '../../../request/version.js'
import { invalidArgument, normalized } from './names.js'
import { fieldsNode, fromText } from './read-text.js'
import type { ObjectShape, Shape } from './shape.js'

/** Parameters that every call accepts. */
export const FRAME_PARAMETERS = ['format', 'max-items', 'continuation-token', 'raw', 'expand', 'versionId'] as const

const MAX_ITEMS = 1000

export interface FrameQuery {
  /** Items of a page, 1 to 1000. */
  readonly maxItems: number
  readonly token: string | undefined
  readonly raw: boolean
  /** Values of `expand`. */
  readonly expand: readonly string[]
}

/** Throws InvalidArgument. */
export function readFrameQuery({ query }: Pick<S3Request, 'query'>): FrameQuery {
  for (const name of FRAME_PARAMETERS) {
    if (query.entries.filter(([found]) => found === name).length > 1) throw repeatedParameter(name)
  }
  refuseVersion(query)
  return {
    maxItems: wholeNumber('max-items', query.get('max-items'), { fallback: MAX_ITEMS, min: 1, max: MAX_ITEMS }),
    token: query.get('continuation-token') || undefined,
    raw: readRaw(query.get('raw')),
    expand: (query.get('expand') ?? '').split(',').filter((value) => value !== ''),
  }
}

function readRaw(value: string | undefined): boolean {
  if (value === undefined || value === '0' || value === 'false') return false
  if (value === '' || value === '1' || value === 'true') return true
  throw invalidArgument('raw', 'must be 0 or 1', value)
}

/**
 * Reads the call's own parameters into the shape of their schema. An unknown parameter that may have been meant for the
 * call is refused, because a misspelt filter must not be ignored. Throws InvalidArgument.
 * @param subresource name of the sub-resource, whose value must be empty
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
      // An empty parameter counts as absent, as in S3 (`prefix=`).
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
  return invalidArgument(name, `is not a parameter of this call: the parameters are ${known.join(', ')}`)
}
