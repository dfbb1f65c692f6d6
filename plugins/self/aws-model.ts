import {
  type AnyOperation,
  type CallFacts,
  type Document,
  defineCall,
  jobDocument,
  type Operation,
  type OperationRow,
  pathOf,
  S3Error,
  shapeOf,
  z,
} from 'dealgate/plugin'
import { type AwsMember, type AwsMembers, AwsShapes, documented, pascal } from './aws-shapes.js'

const CONTENT = 'Body'

type Json = Readonly<Record<string, unknown>>

const pageMembers = {
  size: 'MaxItems',
  token: 'ContinuationToken',
  more: 'IsTruncated',
  next: 'NextContinuationToken',
} as const

/**
 * Describes the calls of plugins as a service model of botocore, which `aws configure add-model` and the SDK for Python
 * read: https://github.com/boto/botocore/tree/develop/botocore/data has many examples. Requests and answers are JSON;
 * the signature is that of S3.
 * @param plugin the plugin whose calls are described; undefined for all
 */
export function describeForAws(rows: readonly OperationRow[], plugin?: string): Json {
  const shapes = new AwsShapes()
  const operations = Object.fromEntries(
    namedCalls(rows, plugin).map((called) => [called.name, operationModel(called, shapes)]),
  )
  const service = ['dealgate', ...(plugin === undefined ? [] : [plugin])]
  return {
    version: '2.0',
    metadata: {
      apiVersion: '1',
      // AWS has no such service: without --endpoint-url, no request reaches a host where it could have an effect.
      endpointPrefix: service.join('-'),
      protocol: 'rest-json',
      protocols: ['rest-json'],
      serviceFullName: service.join(' '),
      serviceId: service.map(pascal).join(' '),
      signatureVersion: 's3v4',
      signingName: 's3',
      uid: `${service.join('-')}-1`,
    },
    ...documented('Calls of dealgate beyond Amazon S3.'),
    operations,
    shapes: shapes.all(),
  }
}

function operationModel({ operation, call, name }: NamedCall, shapes: AwsShapes): Json {
  return {
    name,
    http: { method: call.on.method, requestUri: uriOf(operation, call), responseCode: 200 },
    input: { shape: shapes.structure(`${name}Request`, requestOf(operation, call, name, shapes)) },
    output: { shape: shapes.structure(`${name}Response`, answerOf(call, name, shapes)) },
    ...(call.access === 'public' && { authtype: 'none' }),
    ...documented(call.summary),
  }
}

/** The URI selects JSON, because the model fixes the format that its clients understand. */
function uriOf({ on }: AnyOperation, { on: { subresource } }: CallFacts): string {
  return `${pathOf(on, '{Key+}')}?format=json${subresource === undefined ? '' : `&${subresource}=`}`
}

function requestOf(operation: AnyOperation, call: CallFacts, name: string, shapes: AwsShapes): AwsMembers {
  const places = [...uriOf(operation, call).matchAll(/\{([^}+]+)\+?\}/g)].map(([, place = '']) => place)
  const query = call.query && shapes.membersOf(call.query, 'input', `${name}Request`)
  const body = call.body && shapes.membersOf(call.body, 'input', `${name}Request`)
  const members: Record<string, AwsMember> = {}
  const required: string[] = []
  const add = (wanted: string, member: AwsMember, needed = false) => {
    const free = wanted in members ? `Document${wanted}` : wanted
    // botocore names a member of the body that has another name on the wire by locationName.
    members[free] = free === wanted ? member : { locationName: wanted, ...member }
    if (needed) required.push(free)
  }
  for (const place of places) add(place, { shape: 'String', location: 'uri', locationName: place }, true)
  for (const [locationName, member] of Object.entries(query?.members ?? {}))
    add(
      pascal(locationName),
      { ...member, location: 'querystring', locationName },
      query?.required.includes(locationName),
    )
  if (call.pages !== undefined) {
    add(pageMembers.size, { shape: 'Long', location: 'querystring', locationName: 'max-items' })
    add(pageMembers.token, { shape: 'String', location: 'querystring', locationName: 'continuation-token' })
  }
  if (call.job !== undefined) {
    const token = { location: 'header', locationName: 'x-amz-client-token', idempotencyToken: true } as const
    add('ClientToken', {
      shape: 'String',
      ...documented('Idempotency token, generated if absent: requests with the same token run once.'),
      ...token,
    })
    add('Prefer', {
      shape: 'String',
      ...documented('wait=N: seconds to wait for the job.'),
      location: 'header',
      locationName: 'prefer',
    })
  }
  for (const [member, described] of Object.entries(body?.members ?? {}))
    add(member, described, body?.required.includes(member))
  // A member named Body is the whole body: the command line reads it from a file.
  if (call.pass) add(CONTENT, { shape: 'Content', ...documented('The content.') }, true)
  else if (call.spends && !('Force' in members)) add('Force', { shape: 'Boolean' })
  return { members, required, ...(call.pass !== undefined && { payload: CONTENT }) }
}

/** A call with a job answers with the job while it is not done, so its answer has the members of both. */
function answerOf(call: CallFacts, name: string, shapes: AwsShapes): AwsMembers {
  const job = call.job === undefined ? undefined : shapes.membersOf(jobDocument, 'output', 'Job')
  const { members } = shapes.membersOf(call.result, 'output', `${name}Response`)
  const paging = { [pageMembers.more]: { shape: 'Boolean' }, [pageMembers.next]: { shape: 'String' } }
  return { members: { ...job?.members, ...members, ...(call.pages !== undefined && paging) }, required: [] }
}

const member = z.record(z.string(), z.unknown())

/** Defines the call that describes the calls of plugins for the AWS CLI. */
export function awsModelOperation(rows: () => readonly OperationRow[]): Operation<'service'> {
  return describing(rows, {
    name: 'DescribeExtensionsForAws',
    summary: 'Describes the calls beyond S3 as a service model for the AWS CLI and boto3.',
    path: '/-/aws-model.json',
    result: z.object({
      version: z.string(),
      metadata: member,
      documentation: z.string(),
      operations: member,
      shapes: member,
    }),
    describe: describeForAws,
  })
}

/** Defines the call that describes which calls answer in pages, and how clients request the next page. */
export function awsPaginatorsOperation(rows: () => readonly OperationRow[]): Operation<'service'> {
  return describing(rows, {
    name: 'DescribePaginatorsForAws',
    summary:
      'Describes for the AWS CLI and boto3 which of these calls answer in pages, and how to request the next page.',
    path: '/-/aws-paginators.json',
    result: z.object({ pagination: member }),
    describe: describePaginators,
  })
}

interface Description<Result extends Document> {
  readonly name: string
  readonly summary: string
  readonly path: string
  readonly result: z.ZodType<Result>
  describe(rows: readonly OperationRow[], plugin?: string): Document
}

function describing<Result extends Document>(
  rows: () => readonly OperationRow[],
  { name, summary, path, result, describe }: Description<Result>,
): Operation<'service'> {
  return defineCall({
    name,
    source: 'docs/extensions.md#the-aws-cli',
    summary,
    access: 'signed',
    on: { method: 'GET', resource: 'service', path },
    ownRules: true,
    presignable: true,
    jsonOnly: true,
    query: z.strictObject({
      plugin: z.string().optional().describe('The plugin whose calls are described; all by default.'),
    }),
    result: result as z.ZodType<Document>,
    answer: async ({ query: { plugin } }) => describe(rows(), knownPlugin(plugin, rows())),
  })
}

/** Returns undefined for all plugins. Throws InvalidArgument for a plugin that is not loaded or has no calls. */
function knownPlugin(plugin: string | undefined, rows: readonly OperationRow[]): string | undefined {
  const plugins = [...new Set(rows.flatMap((row) => (row.operation.call ? [row.plugin] : [])))]
  if (plugin === undefined || plugins.includes(plugin)) return plugin
  throw new S3Error('InvalidArgument', {
    message: `No plugin of this name has calls. The plugins with calls are ${plugins.join(', ')}.`,
    fields: { ArgumentName: 'plugin', ArgumentValue: plugin.slice(0, 100) },
  })
}

/**
 * Describes which calls of the model answer in pages, in the form of botocore's `paginators-1.json`:
 * https://botocore.amazonaws.com/v1/documentation/api/latest/topics/paginators.html With this file beside the model, in
 * the folder of the service, the AWS CLI and boto3 fetch all pages by themselves.
 * @param plugin the plugin whose calls are described; undefined for all
 */
function describePaginators(rows: readonly OperationRow[], plugin?: string): Readonly<Record<string, unknown>> {
  const paged = namedCalls(rows, plugin).filter(({ call }) => call.pages !== undefined)
  return {
    pagination: Object.fromEntries(
      paged.map(({ name, call }) => [
        name,
        {
          input_token: pageMembers.token,
          limit_key: pageMembers.size,
          more_results: pageMembers.more,
          output_token: pageMembers.next,
          result_key: call.pages,
          // Members that are the same on every page, such as the bucket.
          non_aggregate_keys: [...membersOf(call)].filter((member) => member !== call.pages),
        },
      ]),
    ),
  }
}

function membersOf({ result }: CallFacts): Iterable<string> {
  const shape = shapeOf(result, 'output')
  return shape.kind === 'object' ? shape.members.keys() : []
}

interface NamedCall {
  readonly plugin: string
  readonly operation: AnyOperation
  readonly call: CallFacts
  /** Its name in the model, which no other call has. */
  readonly name: string
}

/**
 * Lists the calls of a model, each with a unique name. If two plugins have a call of the same name, each is prefixed
 * with its plugin's name; a name that is still taken gets a number.
 * @param plugin the plugin whose calls are listed; undefined for all
 */
function namedCalls(rows: readonly OperationRow[], plugin?: string): NamedCall[] {
  const calls = rows
    .filter((row) => plugin === undefined || row.plugin === plugin)
    .flatMap(({ plugin, operation }) => (operation.call ? [{ plugin, operation, call: operation.call }] : []))
  const owners = new Map<string, Set<string>>()
  for (const { plugin, call } of calls) owners.set(call.name, (owners.get(call.name) ?? new Set()).add(plugin))
  const taken = new Set<string>()
  return calls.map((one) => {
    const shared = (owners.get(one.call.name)?.size ?? 0) > 1
    const wanted = shared ? `${pascal(one.plugin)}${one.call.name}` : one.call.name
    let name = wanted
    for (let n = 2; taken.has(name); n++) name = `${wanted}${n}`
    taken.add(name)
    return { ...one, name }
  })
}
