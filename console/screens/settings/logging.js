import { html } from '../../lib/html.js'
import { Element } from '../../lib/xml.js'
import { Choice, Text } from './inputs.js'
import { Single } from './single.js'

const FORMATS = [
  ['', 'PREFIX with the time of the delivery'],
  ['EventTime', 'In folders by account, region, bucket and day of the requests'],
  ['DeliveryTime', 'In folders by account, region, bucket and day of the delivery'],
]

const sourceOf = (enabled) => {
  const parts = enabled?.child('TargetObjectKeyFormat')?.child('PartitionedPrefix')
  return parts && (parts.get('PartitionDateSource') ?? 'DeliveryTime')
}

/** Where the log of requests to a bucket is written. */
export const logging = {
  name: 'Access log',
  query: 'logging',
  root: 'BucketLoggingStatus',
  none: '<BucketLoggingStatus/>',
  isNone: (text) => !text.includes('<LoggingEnabled>'),
  hint: 'Who read or changed what, in the format of S3, as objects in a bucket of the same account. The lines of some minutes become an object.',
  View: Single,
  Fields({ value }) {
    const enabled = value.child('LoggingEnabled')
    return html`<${Text} label="Bucket of the log" hint="Empty: no log is written." name="TargetBucket" defaultValue=${enabled?.get('TargetBucket')} />
      <${Text} label="Keys begin with" hint="Such as logs/photos/." name="TargetPrefix" defaultValue=${enabled?.get('TargetPrefix')} />
      <${Choice} label="Keys of the log" name="format" of=${FORMATS} chosen=${sourceOf(enabled) ?? ''} />`
  },
  change(root, values) {
    const target = values.get('TargetBucket').trim()
    if (target === '') return null
    const enabled = root.child('LoggingEnabled') ?? new Element('LoggingEnabled')
    enabled.replace('TargetBucket', [target])
    enabled.replace('TargetPrefix', [values.get('TargetPrefix')])
    const source = values.get('format')
    if (source !== (sourceOf(enabled) ?? '')) {
      const inside =
        source === ''
          ? new Element('SimplePrefix')
          : new Element('PartitionedPrefix', [new Element('PartitionDateSource', source)])
      enabled.replace('TargetObjectKeyFormat', [new Element('TargetObjectKeyFormat', [inside])])
    }
    root.replace('LoggingEnabled', [enabled])
    return root
  },
}
