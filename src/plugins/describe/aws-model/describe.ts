import type { CallFacts } from '../../calls/declare/call.js'
import type { AnyOperation } from '../../forms/plugin.js'
import { jobDocument } from '../../jobs/document.js'
import type { Row } from '../../table/table.js'
import { type NamedCall, namedCalls } from './names.js'
import { type AwsMember, type AwsMembers, AwsShapes, documented, pascal } from './shapes.js'

const CONTENT = 'Body'

type Json = Readonly<Record<string, unknown>>

/** Members of requests and answers for paging. */
export const pageMembers = {
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
export function describeForAws(rows: readonly Row[], plugin?: string): Json {
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
  const path = { service: on.path ?? '/', bucket: '/{Bucket}', object: '/{Bucket}/{Key+}' }[on.resource]
  return `${path}?format=json${subresource === undefined ? '' : `&${subresource}=`}`
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
