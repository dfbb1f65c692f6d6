import { defineCall, definePlugin, z } from 'dealgate/plugin'
import { readCursor, writeCursor } from './cursor.js'
import type { Entry } from './entry.js'
import { type Found, LastRequests } from './look.js'
import { Peers } from './peers.js'
import { shownTo, viewerOf } from './viewer.js'

const MAX_PAGE = 1000

const request = z.object({
  Time: z.iso.datetime().describe('When it ended.'),
  RequestId: z.string(),
  Operation: z.string().describe('Unknown for a request that was refused before its operation was known.'),
  Plugin: z.string().optional().describe('Absent for core S3.'),
  Method: z.string(),
  Status: z.int(),
  Error: z.string().optional().describe('Code of the error.'),
  Cut: z.boolean().describe('The connection ended before the answer was complete.'),
  Bucket: z.string().optional(),
  Key: z.string().optional(),
  AccessKeyId: z.string().optional().describe('Absent without a valid signature, and for key pairs of other accounts.'),
  Account: z.string().optional().describe('Canonical id of the account of the caller.'),
  Session: z.string().optional().describe('Name of the session, for temporary credentials.'),
  Address: z.string().describe('Address of the client.'),
  UserAgent: z.string().optional().describe('Its first 300 characters.'),
  Milliseconds: z.number(),
  BytesIn: z.int(),
  BytesOut: z.int(),
  Action: z.string().optional().describe('Status 403: the action that was refused, as GetDecision takes it.'),
  Reason: z.string().optional().describe('Status 403: the statement, ACL, right or rule that refused it.'),
})

function listRequests(peers: () => Peers) {
  return defineCall({
    name: 'ListRequests',
    source: 'docs/observability.md#live-requests',
    summary: 'Lists the last requests to the server, with why those with status 403 were refused.',
    access: 'signed',
    on: { method: 'GET', resource: 'service', path: '/-/requests/v1' },
    query: z.strictObject({
      status: z
        .string()
        .regex(/^[1-5](?:\d\d|xx)$/, 'must be a status such as 403, or a class such as 4xx')
        .optional()
        .describe('A status, or its class: 4xx.'),
      operation: z.string().min(1).optional().describe('Such as PutObject.'),
      bucket: z.string().min(1).optional(),
      prefix: z.string().optional().describe('How the key begins.'),
      caller: z
        .string()
        .min(1)
        .optional()
        .describe('An access key id, the canonical id of an account, or - for requests without a valid signature.'),
      after: z
        .string()
        .max(4000)
        .optional()
        .describe('`After` of an earlier answer: what came since, the oldest first. Without it, the newest ones.'),
      max: z.int().min(1).max(MAX_PAGE).optional().describe('Most requests in the answer; default 100.'),
    }),
    result: z.object({
      Requests: z.array(request).meta({ element: 'Request' }).describe('The oldest first.'),
      After: z.string().describe('Where the next call goes on.'),
      More: z.boolean().describe('There are more already.'),
      Lost: z.boolean().describe('Requests since `after` are no longer kept.'),
      Silent: z.int().describe('Processes of the server that have not answered: their requests are missing.'),
    }),
    csv: { list: 'Requests' },
    async answer({ query: { after, max = 100, ...filter } }, context) {
      const viewer = await viewerOf(context)
      const cursor = after === undefined ? undefined : readCursor(after)
      const question = { viewer, filter, max, ...(cursor && { after: Object.fromEntries(cursor) }) }
      const { answers, silent } = await peers().ask(question)
      const page = cursor ? oldestOf(answers, max) : newestOf(answers, max)
      const next = cursor ? cursorAfter(cursor, answers, page) : new Map(upToOf(answers))
      return {
        Requests: page.map(([number, entry]) => shown(number, shownTo(viewer, entry))),
        After: writeCursor(next),
        More: cursor !== undefined && hasMore(answers, page),
        Lost: [...answers.values()].some(({ lost }) => lost),
        Silent: silent,
      }
    },
  })
}

type Answers = ReadonlyMap<string, Found>
type Numbered = Found['requests'][number]

function inOrder(answers: Answers): Numbered[] {
  return [...answers.values()].flatMap(({ requests }) => requests).sort(([one], [other]) => one - other)
}

function newestOf(answers: Answers, max: number): readonly Numbered[] {
  return inOrder(answers).slice(-max)
}

function upToOf(answers: Answers): [process: string, number: number][] {
  return [...answers].map(([process, { upTo }]) => [process, upTo])
}

/** Not beyond what a process has sent that has more. */
function oldestOf(answers: Answers, max: number): readonly Numbered[] {
  const known = Math.min(...[...answers.values()].map(({ more, upTo }) => (more ? upTo : Number.POSITIVE_INFINITY)))
  return inOrder(answers)
    .filter(([number]) => number <= known)
    .slice(0, max)
}

function hasMore(answers: Answers, page: readonly Numbered[]): boolean {
  return [...answers.values()].some(({ more }) => more) || inOrder(answers).length > page.length
}

/** Behind the last request of each process that the page has; behind all of one whose requests it has all. */
function cursorAfter(before: ReadonlyMap<string, number>, answers: Answers, page: readonly Numbered[]) {
  const next = new Map(before)
  const taken = new Set(page)
  for (const [process, { requests, upTo }] of answers) {
    const left = requests.findIndex((one) => !taken.has(one))
    const last = left < 1 ? before.get(process) : requests[left - 1]?.[0]
    // Those that were heard of last stand at the end.
    next.delete(process)
    next.set(process, left === -1 ? upTo : (last ?? 0))
  }
  return next
}

/** Members are absent where nothing is known, and where the viewer may not know it. */
function shown(number: number, { signer, refusal, ...entry }: Entry) {
  const { plugin, error, bucket, key, userAgent } = entry
  const { accessKeyId = '', account, session } = signer ?? {}
  const { action, reason = '' } = refusal ?? {}
  return {
    ...{ Time: new Date(number / 1000).toISOString(), RequestId: entry.requestId, Operation: entry.operation },
    ...(plugin !== undefined && { Plugin: plugin }),
    ...{ Method: entry.method, Status: entry.status },
    ...(error !== undefined && { Error: error }),
    Cut: entry.cut,
    ...(bucket !== undefined && { Bucket: bucket }),
    ...(key !== undefined && { Key: key }),
    ...(accessKeyId !== '' && { AccessKeyId: accessKeyId }),
    ...(account !== undefined && { Account: account }),
    ...(session !== undefined && { Session: session }),
    Address: entry.remote,
    ...(userAgent !== undefined && { UserAgent: userAgent }),
    ...{ Milliseconds: entry.ms, BytesIn: entry.bytesIn, BytesOut: entry.bytesOut },
    ...(action !== undefined && { Action: action }),
    ...(reason !== '' && { Reason: reason }),
  }
}

/** The last requests of the server, in memory. */
export default definePlugin({
  name: 'requests',
  standard: true,
  summary: 'Shows the last requests to the server, and why it has refused some.',
  create(_options, host) {
    let last: LastRequests | undefined
    let peers: Peers | undefined
    return {
      operations: [
        listRequests(() => {
          if (!peers) throw new Error('the plugin is not started')
          return peers
        }),
      ],
      requestEnded: (ended) => last?.add(ended),
      async start() {
        const requests = new LastRequests(host.now)
        last = requests
        peers = new Peers(host.signals, (question, name) => requests.find(question, name))
      },
      async stop() {
        peers?.close()
        ;[last, peers] = [undefined, undefined]
      },
    }
  },
})
