// Every screen, in the order of the navigation: its address, the file below `screens` that is loaded when the address is
// first opened, and the function in it that makes its elements. `nav` is its name in the navigation.
export const screens = [
  { path: '/buckets', nav: 'Buckets', file: 'buckets', view: 'Buckets' },
  { path: '/buckets/:bucket/objects', file: 'objects', view: 'Objects' },
  { path: '/buckets/:bucket/object', file: 'object', view: 'ObjectScreen' },
  { path: '/buckets/:bucket/pending', file: 'pending', view: 'Pending' },
  { path: '/buckets/:bucket/settings', file: 'settings', view: 'Settings' },
  { path: '/uploads', nav: 'Uploads', file: 'uploads', view: 'Uploads' },
  { path: '/buckets/:bucket/archive', file: 'archive', view: 'Archive' },
  { path: '/deals', nav: 'Deals', file: 'deals', view: 'Deals' },
  { path: '/deals/:cid', file: 'deals', view: 'Deal' },
  { path: '/providers', file: 'deals', view: 'Providers' },
  { path: '/jobs', nav: 'Jobs', file: 'jobs', view: 'Jobs' },
  { path: '/jobs/:id', file: 'jobs', view: 'Job' },
  { path: '/schedules', nav: 'Schedules', file: 'schedules', view: 'Schedules' },
  { path: '/overview', nav: 'Overview', file: 'overview', view: 'Overview' },
  { path: '/keys', nav: 'Keys', file: 'keys', view: 'Keys' },
  { path: '/accounts', file: 'accounts', view: 'Accounts' },
  { path: '/changes', file: 'changes', view: 'Changes' },
  { path: '/calls', nav: 'Calls', file: 'calls', view: 'Calls' },
  { path: '/calls/:id', file: 'calls', view: 'Call' },
  { path: '/server', nav: 'Server', file: 'server', view: 'Server' },
]
