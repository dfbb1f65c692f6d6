import { visibleText } from '../../lib/format.js'
import { html } from '../../lib/html.js'
import { Element } from '../../lib/xml.js'
import { Check } from '../../parts/form.js'
import { Choice, Choices, one, Text, textsOf } from './inputs.js'
import { Single } from './single.js'

const ARN = 'arn:aws:s3:::'
const FIELDS = [
  ...['Size', 'LastModifiedDate', 'StorageClass', 'ETag', 'IsMultipartUploaded', 'EncryptionStatus'],
  ...['ObjectLockRetainUntilDate', 'ObjectLockMode', 'ObjectLockLegalHoldStatus', 'ChecksumAlgorithm', 'ObjectOwner'],
  ...['x-Cid', 'x-DealState', 'x-DealCount', 'x-Providers', 'x-DealEnd', 'x-BytesAt'],
]
const options = (...words) => words.map((word) => [word, word])

const destinationOf = (root) => root.child('Destination')?.child('S3BucketDestination')

/** Where an inventory is written, as `bucket/prefix`. */
export function targetOf(root) {
  const to = destinationOf(root)
  return [to?.get('Bucket')?.replace(ARN, ''), to?.get('Prefix')].filter(Boolean).join('/')
}

function Fields({ value }) {
  const to = destinationOf(value)
  return html`<${Check} label="Enabled" input=${{ name: 'IsEnabled', defaultChecked: value.get('IsEnabled') !== 'false' }} />
    <${Text} label="Bucket of the files" name="Bucket" required defaultValue=${to?.get('Bucket')?.replace(ARN, '')} />
    <${Text} label="Keys begin with" name="Prefix" defaultValue=${to?.get('Prefix')} />
    <div class="columns">
      <${Choice} label="Format" name="Format" of=${options('CSV', 'Parquet')} chosen=${to?.get('Format') ?? 'CSV'} />
      <${Choice} label="Written" name="Frequency" of=${options('Daily', 'Weekly')} chosen=${value.get('Schedule', 'Frequency') ?? 'Daily'} />
      <${Choice} label="Versions" name="Versions" of=${options('Current', 'All')} chosen=${value.get('IncludedObjectVersions') ?? 'Current'} />
    </div>
    <${Text} label="Only keys that begin with" name="Filter" defaultValue=${value.get('Filter', 'Prefix')} />
    <${Choices} legend="Columns besides the bucket and the key" name="Field" known=${FIELDS} chosen=${value.child('OptionalFields') ? textsOf(value.child('OptionalFields'), 'Field') : FIELDS.slice(0, 3)} />`
}

/** One inventory of a bucket. */
export function inventoryKind(id) {
  return {
    name: `Inventory ${visibleText(id)}`,
    query: 'inventory',
    more: { id },
    root: 'InventoryConfiguration',
    absent: 'NoSuchConfiguration',
    // It is written with the rights of the key pair that sets it, now and later, which a session has not.
    signed: true,
    View: Single,
    Fields,
    change(root, values) {
      const destination = root.child('Destination') ?? new Element('Destination')
      const to = destinationOf(root) ?? new Element('S3BucketDestination')
      to.replace('Bucket', [ARN + values.get('Bucket').trim()])
      to.replace('Format', [values.get('Format')])
      to.replace('Prefix', one(values, 'Prefix'))
      destination.replace('S3BucketDestination', [to])
      root.replace('Destination', [destination])
      root.replace('IsEnabled', [String(values.has('IsEnabled'))])
      root.replace(
        'Filter',
        one(values, 'Filter').map((prefix) => new Element('Filter', [new Element('Prefix', prefix)])),
      )
      root.replace('Id', [id])
      root.replace('IncludedObjectVersions', [values.get('Versions')])
      const fields = values.getAll('Field').map((field) => new Element('Field', field))
      root.replace('OptionalFields', fields.length > 0 ? [new Element('OptionalFields', fields)] : [])
      root.replace('Schedule', [new Element('Schedule', [new Element('Frequency', values.get('Frequency'))])])
    },
  }
}
