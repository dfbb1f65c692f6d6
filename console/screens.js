// Every screen: its address, the file below `screens` that is loaded when the address is first opened, and the function in
// it that makes its elements. `nav` is its name in the navigation, which has the groups and entries in this order; one
// without it belongs to the entry whose address its own begins with, or to the one that `under` names. `name` is what the
// palette calls a screen that is not in the navigation.
export const screens = [
  { path: '/buckets', group: 'Storage', nav: 'Buckets', file: 'buckets', view: 'Buckets' },
  { path: '/buckets/:bucket/objects', group: 'Storage', file: 'objects', view: 'Objects' },
  { path: '/buckets/:bucket/versions', group: 'Storage', file: 'versions', view: 'Versions' },
  { path: '/buckets/:bucket/object', group: 'Storage', file: 'object', view: 'ObjectScreen' },
  { path: '/buckets/:bucket/pending', group: 'Storage', file: 'pending', view: 'Pending' },
  { path: '/buckets/:bucket/settings', group: 'Storage', file: 'settings/general', view: 'General' },
  { path: '/buckets/:bucket/settings/access', group: 'Storage', file: 'settings/access', view: 'Access' },
  { path: '/buckets/:bucket/settings/lifecycle', group: 'Storage', file: 'settings/lifecycle', view: 'Lifecycle' },
  { path: '/buckets/:bucket/settings/deals', group: 'Storage', file: 'settings/deals', view: 'Deals' },
  { path: '/buckets/:bucket/settings/events', group: 'Storage', file: 'settings/events', view: 'Events' },
  { path: '/buckets/:bucket/archive', group: 'Storage', file: 'archive', view: 'Archive' },
  { path: '/buckets/:bucket/pay', group: 'Storage', file: 'pay', view: 'PayScreen' },
  { path: '/buckets/:bucket/inventories', group: 'Storage', file: 'inventories', view: 'Inventories' },
  { path: '/buckets/:bucket/access-log', group: 'Storage', file: 'access-log', view: 'AccessLog' },
  { path: '/batch', group: 'Storage', nav: 'Batch jobs', file: 'batch', view: 'BatchJobs' },
  { path: '/batch/new', group: 'Storage', name: 'New batch job', file: 'batch-new', view: 'NewBatch' },
  { path: '/batch/:id', group: 'Storage', file: 'batch', view: 'BatchJob' },
  { path: '/uploads', group: 'Storage', nav: 'Uploads', file: 'uploads', view: 'Uploads' },

  { path: '/deals', group: 'Archive', nav: 'Deals', file: 'deals', view: 'Deals' },
  { path: '/deals/:cid', group: 'Archive', file: 'deal', view: 'Deal' },
  { path: '/providers', group: 'Archive', under: '/deals', name: 'Providers', file: 'providers', view: 'Providers' },
  { path: '/payments', group: 'Archive', nav: 'Payments', file: 'payments', view: 'Payments' },
  { path: '/payments/uploads', group: 'Archive', name: 'Uploads to IPFS', file: 'paid-uploads', view: 'PaidUploads' },
  { path: '/tasks', group: 'Archive', nav: 'Tasks', file: 'tasks', view: 'Tasks' },
  { path: '/tasks/:uuid', group: 'Archive', file: 'task', view: 'Task' },
  { path: '/schedules', group: 'Archive', nav: 'Schedules', file: 'jobs', view: 'Schedules' },

  { path: '/keys', group: 'Access', nav: 'Keys', file: 'keys', view: 'Keys' },
  { path: '/accounts', group: 'Access', nav: 'Accounts', file: 'accounts', view: 'Accounts' },
  { path: '/changes', group: 'Access', nav: 'Who changed what', file: 'changes', view: 'Changes' },

  { path: '/overview', group: 'Server', nav: 'Overview', file: 'overview', view: 'Overview' },
  { path: '/requests', group: 'Server', nav: 'Live requests', file: 'requests', view: 'Requests' },
  { path: '/jobs', group: 'Server', nav: 'Jobs', file: 'jobs', view: 'Jobs' },
  { path: '/jobs/:id', group: 'Server', file: 'jobs', view: 'Job' },
  { path: '/calls', group: 'Server', nav: 'Calls', file: 'calls', view: 'Calls' },
  { path: '/calls/:id', group: 'Server', file: 'calls', view: 'Call' },
  { path: '/server', group: 'Server', nav: 'Server', file: 'server', view: 'Server' },
]
