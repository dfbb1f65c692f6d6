import { createHash } from 'node:crypto'

/** A request that S3 refuses. Signed with version 4 unless it says otherwise. */
export interface Ask {
  /** Default GET. */
  readonly method?: string
  /** Below the endpoint, encoded. `{upload}` stands for the id of an upload to /rows/upload, which has one part. */
  readonly target: string
  readonly headers?: Readonly<Record<string, string>>
  readonly body?: string
  /** Changes the headers after signing; undefined removes one. */
  readonly edit?: (headers: Readonly<Record<string, string>>) => Record<string, string | undefined>
  /** Sends a presigned URL whose query is changed after signing. */
  readonly link?: (query: string) => string
  /** Sends what is given, without a signature. */
  readonly anonymous?: true
}

/** Members of the error document beside Code, Message, Resource, RequestId and HostId: exact text, or a form. */
type Members = Readonly<Record<string, string | RegExp>>

/** The answer has status and code, such as `404 NoSuchKey`. */
export type Row = readonly [what: string, ask: Ask, answer: string, members?: Members]

export const KEY = '/rows/key'
/** The answer to an argument that is invalid. */
export const invalid = (ArgumentName: string, ArgumentValue?: string): [string, Members] => [
  '400 InvalidArgument',
  { ArgumentName, ...(ArgumentValue !== undefined && { ArgumentValue }) },
]
export const md5 = (text: string) => createHash('md5').update(text).digest('base64')
export const put = (headers: Record<string, string>, body = 'data', target = '/rows/new'): Ask => {
  return { method: 'PUT', target, headers, body }
}
export const document = (method: string, target: string, body: string): Ask => {
  return { method, target, body, headers: { 'content-md5': md5(body) } }
}
/** The answer to an unmet condition. */
export const unmet = (Condition: string | RegExp): [string, Members] => ['412 PreconditionFailed', { Condition }]
/** A row about one header or parameter, by the name of which it is called. */
export const wrong = (name: string, ask: Ask, value?: string): Row => [name, ask, ...invalid(name, value)]
