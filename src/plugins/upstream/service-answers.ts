import { z } from 'zod'
import type { Context } from '../../api/context.js'
import type { Identity } from '../../api/identity.js'
import type { S3Request } from '../../api/request.js'
import { S3Error } from '../../common/errors/s3-error.js'

const scalar = z.union([z.string(), z.number(), z.boolean()])

/**
 * Members of the answers of a service, parsed leniently: deployments omit members, or send numbers as text and text as
 * numbers.
 */
export const lenient = {
  /** Missing: ''. */
  text: scalar.nullish().transform((value) => String(value ?? '')),
  /** Missing: null. */
  nullableText: scalar.nullish().transform((value) => (value === null || value === undefined ? null : String(value))),
  numeric: z.preprocess(
    (value) => (typeof value === 'string' && value.trim() !== '' ? Number(value) : value),
    z.number(),
  ),
  /** `true`, `1`, `"1"` or `"true"`; any other value is false. */
  flag: z
    .unknown()
    .optional()
    .transform((value) => value === true || /^(?:1|true)$/i.test(String(value))),
}

/** The service refuses the token of a request, or wants one. */
export class TokenRefused extends Error {
  override readonly name = 'TokenRefused'
}

/** Runs a call whose token cannot be renewed. A refused token is UpstreamAuthFailed with this message. */
export async function requireToken<T>(run: () => Promise<T>, message: string): Promise<T> {
  try {
    return await run()
  } catch (error) {
    if (error instanceof TokenRefused) throw new S3Error('UpstreamAuthFailed', { message, cause: error })
    throw error
  }
}

/** Who acts at a service. */
export interface Actor {
  readonly identity: Identity | undefined
  /** A JWT that the request itself carries; it takes precedence. */
  readonly bearer: string | undefined
}

const BEARER = /^Bearer +([!-~]{1,8192}) *$/i

/**
 * @param service `task platform`
 * @param header with the token of the service in signed requests, in lower case. Unsigned ones have it in Authorization
 * @throws S3Error InvalidArgument for a malformed header
 */
export function actorOf(
  { caller }: Pick<Context, 'caller'>,
  { headers }: Pick<S3Request, 'headers'>,
  { service, header }: { readonly service: string; readonly header: string },
): Actor {
  const override = headers[header]
  const bearer = BEARER.exec(String(override ?? headers.authorization ?? ''))?.[1]
  if (override !== undefined && bearer === undefined) {
    throw new S3Error('InvalidArgument', {
      message: `${header} must be Bearer and the token of the ${service}.`,
      fields: { ArgumentName: header },
    })
  }
  return { identity: caller?.identity, bearer }
}
