// Writes common/s3-members.ts: the elements that the documents of S3 may hold, from the public model of the API that
// botocore ships. With them, an element that S3 has and this server has not is NotImplemented, and not MalformedXML:
//
//   node scripts/s3-members.mjs .ci/clients/lib/python3.11/site-packages/botocore/data
import { execFileSync } from 'node:child_process'
import { readdirSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { gunzipSync } from 'node:zlib'

const [data] = process.argv.slice(2)
if (data === undefined) {
  console.error('Usage: node scripts/s3-members.mjs BOTOCORE/data')
  process.exit(2)
}

/** The operations whose documents this server reads; of S3 Control, the jobs alone. */
const OPERATIONS = {
  s3: [
    ...['CompleteMultipartUpload', 'CreateBucket', 'DeleteObjects', 'PutBucketAcl', 'PutBucketCors'],
    ...['PutBucketEncryption', 'PutBucketInventoryConfiguration', 'PutBucketLifecycleConfiguration'],
    ...['PutBucketLogging', 'PutBucketNotificationConfiguration', 'PutBucketOwnershipControls'],
    ...['PutBucketRequestPayment', 'PutBucketTagging', 'PutBucketVersioning', 'PutBucketWebsite', 'PutObjectAcl'],
    ...['PutObjectLegalHold', 'PutObjectLockConfiguration', 'PutObjectRetention', 'PutObjectTagging'],
    ...['PutPublicAccessBlock', 'RestoreObject'],
  ],
  s3control: ['CreateJob', 'PutJobTagging'],
}

const members = new Map()
const values = new Map()

for (const [service, operations] of Object.entries(OPERATIONS)) {
  const model = readModel(service)
  for (const name of operations) {
    const input = model.shapes[model.operations[name].input.shape]
    const payload = input.payload && input.members[input.payload]
    if (payload) walk(model, payload.shape, payload.locationName ?? input.payload)
    else walk(model, model.operations[name].input.shape, model.operations[name].input.locationName)
  }
}

const rows = (map) =>
  [...map]
    .sort(([a], [b]) => (a < b ? -1 : 1))
    .map(([path, names]) => `  ${JSON.stringify(path)}: ${JSON.stringify([...names].sort().join(' '))},`)
const file = fileURLToPath(new URL('../common/s3-members.ts', import.meta.url))
writeFileSync(
  file,
  `// Written by scripts/s3-members.mjs from the public model of S3.

/** The names of the elements that an element of a document of S3 may hold, by its path. */
export const S3_MEMBERS: Readonly<Record<string, string>> = {
${rows(members).join('\n')}
}

/** The values that an element may have, by its path, where S3 lists them. */
export const S3_VALUES: Readonly<Record<string, string>> = {
${rows(values).join('\n')}
}
`,
)
execFileSync(process.execPath, [
  fileURLToPath(import.meta.resolve('@biomejs/biome/bin/biome')),
  'format',
  '--write',
  file,
])

function readModel(service) {
  const versions = readdirSync(join(data, service)).sort()
  const folder = join(data, service, versions.at(-1))
  const name = readdirSync(folder).find((one) => one.startsWith('service-2.json'))
  const bytes = readFileSync(join(folder, name))
  return JSON.parse(name.endsWith('.gz') ? gunzipSync(bytes) : bytes)
}

function walk(model, shape, path) {
  const { type, members: held = {}, enum: listed } = model.shapes[shape]
  if (type === 'string' && listed) add(values, path, listed)
  if (type !== 'structure') return
  add(members, path, [])
  for (const [name, member] of Object.entries(held)) {
    // Headers, parts of the target, and attributes.
    if (member.location !== undefined || member.xmlAttribute) continue
    const target = model.shapes[member.shape]
    const flat = target.flattened || member.flattened
    const item = target.type === 'list' ? target.member : undefined
    const element = member.locationName ?? ((flat && item?.locationName) || name)
    add(members, path, [element])
    const below = `${path}/${element}`
    if (target.type === 'map') {
      add(members, below, ['entry'])
      add(members, `${below}/entry`, [target.key.locationName ?? 'key', target.value.locationName ?? 'value'])
    } else if (!item) walk(model, member.shape, below)
    else if (flat) walk(model, item.shape, below)
    else {
      add(members, below, [item.locationName ?? 'member'])
      walk(model, item.shape, `${below}/${item.locationName ?? 'member'}`)
    }
  }
}

function add(map, path, names) {
  const all = map.get(path) ?? new Set()
  for (const name of names) all.add(name)
  map.set(path, all)
}
