import type { OwnRequest } from 'dealgate/plugin'
import type { BatchOperation, Row } from './order.js'
import { on } from './task.js'

/**
 * The requests that a task sends for an object, without their bodies, for the decision whether a caller may send them.
 * The tags and the bytes that a copy reads are requests of their own here.
 */
export function requestsOf(operation: BatchOperation, row: Row): readonly OwnRequest[] {
  const read: OwnRequest = { ...on(row), method: 'GET' }
  const about = (subresource: string, method: OwnRequest['method'], headers?: OwnRequest['headers']): OwnRequest => ({
    ...on(row, { [subresource]: '' }),
    ...{ method, ...(headers && { headers }) },
  })
  const copyTo = (bucket: string, key: string, headers: Readonly<Record<string, string>>): OwnRequest => ({
    ...{
      method: 'PUT',
      bucket,
      key,
      headers: { ...headers, 'x-amz-copy-source': `/${row[0]}/${encodeURIComponent(row[1])}` },
    },
  })
  const bypass = (yes?: boolean) => (yes ? { 'x-amz-bypass-governance-retention': 'true' } : undefined)
  switch (operation.name) {
    case 'Delete': {
      const headers = bypass(operation.bypassGovernance)
      return [{ ...on(row), method: 'DELETE', ...(headers && { headers }) }]
    }
    case 'Copy':
      return [read, copyTo(operation.targetBucket, `${operation.targetPrefix}${row[1]}`, operation.headers)]
    case 'Archive':
      return [read, copyTo(row[0], row[1], { 'x-amz-storage-class': operation.storageClass })]
    case 'Encrypt':
      return [read, copyTo(row[0], row[1], { 'x-amz-server-side-encryption': 'AES256' })]
    case 'Tag':
      return [...(operation.replace ? [] : [about('tagging', 'GET')]), about('tagging', 'PUT')]
    case 'Untag':
      return [...(operation.keys ? [about('tagging', 'GET'), about('tagging', 'PUT')] : []), about('tagging', 'DELETE')]
    case 'Acl':
      return [about('acl', 'PUT', operation.headers)]
    case 'Restore':
      return [about('restore', 'POST')]
    case 'Retain':
      return [about('retention', 'PUT', bypass(operation.bypassGovernance))]
    case 'LegalHold':
      return [about('legal-hold', 'PUT')]
    case 'Checksum':
      return [read]
    case 'Rewrap':
      return [about('x-encryption', 'POST')]
    case 'Deal':
      return [about('x-deal', 'POST')]
    case 'Renew':
      return [about('x-deal', 'GET'), about('x-deal', 'POST')]
  }
}
