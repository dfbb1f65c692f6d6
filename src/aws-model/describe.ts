import type { CallFacts } from '../extension/call.js'
import { jobDocument } from '../jobs/document.js'
import type { AnyOperation } from '../registry/plugin.js'
import type { Row } from '../registry/table.js'
import { type AwsMember, type AwsMembers, AwsShapes, documented, pascal } from './shapes.js'

type Json = Readonly<Record<string, unknown>>

interface Called {
  readonly plugin: string
  readonly operation: AnyOperation
  readonly call: CallFacts
  /** Its name in the model. */
  readonly name: string
}

/**
 * The calls of plugins as a service model of botocore, which `aws configure add-model` and the SDK for Python take: https://github.com/boto/botocore/tree/develop/botocore/data
 * has many of them. Requests and answers are JSON; the signature is that of S3.
 * @param plugin the one whose calls are told; undefined for all
 */
export function describeForAws(rows: readonly Row[], plugin?: string): Json {
  const shapes = new AwsShapes()
  const calls = calledIn(rows.filter((row) => plugin === undefined || row.plugin === plugin))
  const operations = Object.fromEntries(calls.map((called) => [called.name, describeCall(called, shapes)]))
  const service = ['dealgate', ...(plugin === undefined ? [] : [plugin])]
  return {
    version: '2.0',
    metadata: {
      apiVersion: '1',
      // Of AWS there is no such service: without --endpoint-url, nothing goes to where it could mean something.
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

/** Where two plugins have a call of one name, each gets its plugin's name before it. */
function calledIn(rows: readonly Row[]): Called[] {
  const calls = rows.flatMap(({ plugin, operation }) =>
    operation.call ? [{ plugin, operation, call: operation.call }] : [],
  )
  const owners = new Map<string, Set<string>>()
  for (const { plugin, call } of calls) owners.set(call.name, (owners.get(call.name) ?? new Set()).add(plugin))
  return calls.map((one) => {
    const shared = (owners.get(one.call.name)?.size ?? 0) > 1
    return { ...one, name: shared ? `${pascal(one.plugin)}${one.call.name}` : one.call.name }
  })
}

function describeCall({ operation, call, name }: Called, shapes: AwsShapes): Json {
  return {
    name,
    http: { method: call.on.method, requestUri: uriOf(operation, call), responseCode: 200 },
    input: { shape: shapes.structure(`${name}Request`, requestOf(operation, call, name, shapes)) },
    output: { shape: shapes.structure(`${name}Response`, answerOf(call, name, shapes)) },
    ...documented(call.summary),
  }
}

/** The form of the answer is part of it, for what the clients of a model understand is settled. */
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
    // botocore has its own word for what stands in a body by another name.
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
    add('MaxItems', { shape: 'Long', location: 'querystring', locationName: 'max-items' })
    add('ContinuationToken', { shape: 'String', location: 'querystring', locationName: 'continuation-token' })
  }
  if (call.job !== undefined) {
    const token = { location: 'header', locationName: 'x-amz-client-token', idempotencyToken: true } as const
    add('ClientToken', {
      shape: 'String',
      ...documented('Made up where it is not given: the same again is done once.'),
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
  if (call.spends && !('Force' in members)) add('Force', { shape: 'Boolean' })
  return { members, required }
}

/** What becomes a job answers the job where it is not done yet. */
function answerOf(call: CallFacts, name: string, shapes: AwsShapes): AwsMembers {
  const job = call.job === undefined ? undefined : shapes.membersOf(jobDocument, 'output', 'Job')
  const { members } = shapes.membersOf(call.result, 'output', `${name}Response`)
  const paging = { IsTruncated: { shape: 'Boolean' }, NextContinuationToken: { shape: 'String' } }
  return { members: { ...job?.members, ...members, ...(call.pages !== undefined && paging) }, required: [] }
}
