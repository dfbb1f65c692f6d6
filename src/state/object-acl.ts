/** An access control list, with canonical ids: see access/decision/acl.ts. */
export interface ObjectAcl {
  readonly owner: string
  readonly grants: readonly {
    readonly grantee: { readonly id: string } | { readonly group: 'AllUsers' | 'AuthenticatedUsers' | 'LogDelivery' }
    readonly permission: 'READ' | 'WRITE' | 'READ_ACP' | 'WRITE_ACP' | 'FULL_CONTROL'
  }[]
}
