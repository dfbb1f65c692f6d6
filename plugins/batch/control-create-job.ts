import { xml } from 'dealgate/plugin'
import { operationOf } from './control-operation.js'
import {
  bucketOfArn,
  child,
  childOf,
  notOffered,
  number,
  objectOfArn,
  only,
  refused,
  required,
  tagsOf,
} from './control-values.js'
import { checkedFields } from './native-order.js'
import { type BatchOrder, type FilterSource, MANIFEST_FORMATS, type ManifestSource, type ReportOrder } from './order.js'

/** What CreateJob orders. */
interface CreateJob {
  readonly order: Omit<BatchOrder, 'client'>
  readonly token: string
}

const REQUEST = {
  once: [
    ...['AccountId', 'ConfirmationRequired', 'Operation', 'Report', 'ClientRequestToken', 'Manifest'],
    ...['ManifestGenerator', 'Description', 'Priority', 'RoleArn', 'Tags'],
  ],
}

/**
 * Reads the document of CreateJob: https://docs.aws.amazon.com/AmazonS3/latest/API/API_control_CreateJob.html
 * @throws S3Error InvalidRequest, MalformedXML, NotImplemented
 */
export function readCreateJob(root: xml.Node): CreateJob {
  xml.requireChildren(root, 'CreateJobRequest', REQUEST)
  const operation = only(child(root, 'Operation'), 'Operation')
  const [manifest, generator] = [childOf(root, 'Manifest'), childOf(root, 'ManifestGenerator')]
  if ((manifest === undefined) === (generator === undefined))
    throw refused('State the objects by a Manifest or a ManifestGenerator, and not by both.')
  const role = required(root, 'RoleArn')
  if (!/^arn:[^:]+:iam::\d{12}:role\/.+/.test(role)) throw refused('RoleArn is not the ARN of a role.')
  const token = required(root, 'ClientRequestToken')
  if (!/^[ -~]{1,64}$/.test(token)) throw refused('ClientRequestToken has 1 to 64 printable characters.')
  const priority = number(required(root, 'Priority'), 'Priority')
  const report = child(root, 'Report')
  const order = reportOf(report)
  return {
    token,
    order: {
      operation: operationOf(operation),
      ...(manifest ? { manifest: manifestOf(manifest) } : generator && { filter: filterOf(generator) }),
      ...(order && { report: order }),
      description: xml.text(root, 'Description') ?? '',
      priority,
      tags: tagsOf(childOf(root, 'Tags')),
      confirmationRequired: xml.text(root, 'ConfirmationRequired') === 'true',
      dryRun: false,
      control: {
        Operation: wrapped('Operation', child(root, 'Operation')),
        ...(manifest && { Manifest: wrapped('Manifest', manifest) }),
        ...(generator && { ManifestGenerator: wrapped('ManifestGenerator', generator) }),
        Report: wrapped('Report', report),
        RoleArn: xml.element('RoleArn', role),
        name: operation.name,
      },
    },
  }
}

/** The markup of an element that was parsed. */
function wrapped(name: string, { text, children }: xml.Node): string {
  const inner = [...children].flatMap(([child, nodes]) => nodes.map((node) => wrapped(child, node))).join('')
  return `<${name}>${children.size > 0 ? inner : xml.escape(text)}</${name}>`
}

function manifestOf(node: xml.Node): ManifestSource {
  xml.requireChildren(node, 'Manifest', { once: ['Spec', 'Location'] })
  const [spec, location] = [child(node, 'Spec'), child(node, 'Location')]
  const format = MANIFEST_FORMATS.find((known) => known === xml.text(spec, 'Format'))
  if (!format) throw refused(`The Format of a manifest is ${MANIFEST_FORMATS.join(' or ')}.`)
  const fields = (childOf(spec, 'Fields')?.children.get('member') ?? []).map(({ text }) => text)
  const [bucket, key] = objectOfArn(required(location, 'ObjectArn'))
  const versionId = xml.text(location, 'ObjectVersionId')
  return {
    ...{ format, fields: format === MANIFEST_FORMATS[0] ? checkedFields(fields) : [], bucket, key },
    ...(versionId !== undefined && { versionId }),
    etag: required(location, 'ETag').replaceAll('"', ''),
  }
}

const FILTER = {
  once: [
    ...['CreatedAfter', 'CreatedBefore', 'KeyNameConstraint', 'ObjectSizeGreaterThanBytes'],
    ...['ObjectSizeLessThanBytes', 'MatchAnyStorageClass'],
  ],
}

const GENERATOR = ['SourceBucket', 'ExpectedBucketOwner', 'EnableManifestOutput', 'Filter']

function filterOf(generator: xml.Node): FilterSource {
  const { name, node } = only(generator, 'ManifestGenerator')
  if (name !== 'S3JobManifestGenerator') throw notOffered(`${name.slice(0, 100)} is not offered.`)
  if (xml.text(node, 'EnableManifestOutput') === 'true')
    throw notOffered('EnableManifestOutput is not offered: the report names all objects of a job.')
  const unknown = [...node.children.keys()].find((one) => !GENERATOR.includes(one))
  if (unknown !== undefined) throw notOffered(`${unknown.slice(0, 100)} of S3JobManifestGenerator is not offered.`)
  const owner = xml.text(node, 'ExpectedBucketOwner')
  const filter = childOf(node, 'Filter')
  const stray = [...(filter?.children.keys() ?? [])].find((one) => !FILTER.once.includes(one))
  if (stray !== undefined) throw notOffered(`The filter ${stray.slice(0, 100)} is not offered.`)
  const members = (from: xml.Node | undefined, list: string) =>
    (from && childOf(from, list)?.children.get('member'))?.map(({ text }) => text) ?? []
  const keys = filter && childOf(filter, 'KeyNameConstraint')
  const time = (one: string) => {
    const text = filter && xml.text(filter, one)
    if (text === undefined) return undefined
    const parsed = Date.parse(text)
    if (Number.isNaN(parsed)) throw refused(`${one} is not a time in ISO 8601.`)
    return parsed
  }
  const bytes = (one: string) => {
    const text = filter && xml.text(filter, one)
    return text === undefined ? undefined : number(text, one)
  }
  const [createdAfter, createdBefore] = [time('CreatedAfter'), time('CreatedBefore')]
  const [greater, less] = [bytes('ObjectSizeGreaterThanBytes'), bytes('ObjectSizeLessThanBytes')]
  return {
    bucket: bucketOfArn(required(node, 'SourceBucket'), 'SourceBucket'),
    prefixes: members(keys, 'MatchAnyPrefix'),
    suffixes: members(keys, 'MatchAnySuffix'),
    substrings: members(keys, 'MatchAnySubstring'),
    ...(createdAfter !== undefined && { createdAfter }),
    ...(createdBefore !== undefined && { createdBefore }),
    ...(greater !== undefined && { sizeGreaterThan: greater }),
    ...(less !== undefined && { sizeLessThan: less }),
    storageClasses: members(filter, 'MatchAnyStorageClass'),
    ...{ tags: [], dealStates: [], versions: 'Current' },
    ...(owner !== undefined && { owner }),
  }
}

function reportOf(node: xml.Node): ReportOrder | undefined {
  xml.requireChildren(node, 'Report', {
    once: ['Enabled', 'Bucket', 'Format', 'Prefix', 'ReportScope', 'ExpectedBucketOwner'],
  })
  if (xml.text(node, 'Enabled') !== 'true') return undefined
  if ((xml.text(node, 'Format') ?? FORMAT) !== FORMAT) throw refused(`The Format of a report is ${FORMAT}.`)
  const scope = xml.text(node, 'ReportScope') ?? 'AllTasks'
  if (scope !== 'AllTasks' && scope !== 'FailedTasksOnly') throw refused('ReportScope is AllTasks or FailedTasksOnly.')
  const prefix = (xml.text(node, 'Prefix') ?? '').replace(/\/$/, '')
  const owner = xml.text(node, 'ExpectedBucketOwner')
  const bucket = bucketOfArn(required(node, 'Bucket'), 'Bucket of Report')
  return { bucket, prefix, scope, ...(owner !== undefined && { owner }) }
}

const FORMAT = 'Report_CSV_20180820'
