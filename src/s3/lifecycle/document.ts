import { document, element } from '../../common/xml/xml.js'
import type { LifecycleConfiguration, LifecycleFilter, LifecycleRule, When } from './configuration.js'

export function configurationDocument({ rules }: Pick<LifecycleConfiguration, 'rules'>): string {
  return document('LifecycleConfiguration', rules.map(ruleElement).join(''))
}

function ruleElement(rule: LifecycleRule): string {
  const { expiration, transitions = [], abortDays } = rule
  return [
    '<Rule>',
    element('ID', rule.id),
    filterElement(rule.filter),
    element('Status', rule.enabled ? 'Enabled' : 'Disabled'),
    ...transitions.map(
      (transition) =>
        `<Transition>${whenElement(transition)}${element('StorageClass', transition.storageClass)}</Transition>`,
    ),
    expiration
      ? `<Expiration>${'expiredMarkers' in expiration ? element('ExpiredObjectDeleteMarker', expiration.expiredMarkers) : whenElement(expiration)}</Expiration>`
      : '',
    abortDays === undefined
      ? ''
      : `<AbortIncompleteMultipartUpload>${element('DaysAfterInitiation', abortDays)}</AbortIncompleteMultipartUpload>`,
    '</Rule>',
  ].join('')
}

function filterElement(filter: LifecycleFilter): string {
  const conditions = [
    element('Prefix', filter.prefix),
    ...(filter.tags ?? []).map(({ key, value }) => `<Tag>${element('Key', key)}${element('Value', value)}</Tag>`),
    element('ObjectSizeGreaterThan', filter.greaterThan),
    element('ObjectSizeLessThan', filter.lessThan),
  ].join('')
  switch (filter.form) {
    case 'prefix':
      return conditions
    case 'filter':
      return `<Filter>${conditions}</Filter>`
    case 'and':
      return `<Filter><And>${conditions}</And></Filter>`
  }
}

function whenElement(when: When): string {
  return 'days' in when ? element('Days', when.days) : element('Date', new Date(when.date).toISOString())
}
