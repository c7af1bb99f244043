package driver

// Entry names one function of the driver API.
type Entry uint8

// The entries, in the order of the table below.
const (
	Init Entry = iota
	DriverGetVersion
	GetErrorName
	GetErrorString
	DeviceGet
	DeviceGetCount
	DeviceGetName
	DeviceGetUUID
	DeviceGetPCIBusID
	DeviceTotalMem
	DeviceGetAttribute
	PrimaryCtxRetain
	PrimaryCtxRelease
	CtxSetCurrent
	CtxGetCurrent
	CtxGetStreamPriorityRange
	LibraryLoadData
	LibraryUnload
	LibraryGetKernel
	KernelGetFunction
	FuncLoad
	FuncGetAttribute
	FuncSetAttribute
	OccupancyMaxActiveBlocks
	MemGetInfo
	MemGetAllocationGranularity
	MemAddressReserve
	MemAddressFree
	MemCreate
	MemRelease
	MemMap
	MemUnmap
	MemSetAccess
	MemHostRegister
	MemHostUnregister
	MemcpyHtoDAsync
	MemcpyDtoHAsync
	MemcpyDtoDAsync
	MemsetD8Async
	MemsetD32Async
	StreamCreateWithPriority
	StreamDestroy
	StreamWaitEvent
	EventCreate
	EventDestroy
	EventRecord
	EventQuery
	EventElapsedTime
	LaunchKernel
	EntryCount
)

// Class says what a call does to the device.
type Class uint8

// The classes. Stalling calls were found by measurement: they stop all streams of the device, wait for everything that
// is queued, or keep others from launching; see docs/measurements.md.
const (
	Plain    Class = iota // host-side bookkeeping, attributes, virtual memory: disturbs nobody
	Queue                 // puts work on a stream and returns
	Wait                  // asks how far a stream is
	Stalling              // only before proving starts, and after it has ended
	ClassCount
)

// String is the class's name.
func (c Class) String() string { return [...]string{"plain", "queue", "wait", "stalling"}[c] }

// entry is how the driver exports a function. Where symbols has several names, the first that is there counts.
type entry struct {
	symbols []string
	class   Class
}

// The names carry the version suffix that the driver exports; the one without it is often an older function
// with another signature.
var entries = [EntryCount]entry{
	Init:                        {[]string{"cuInit"}, Plain},
	DriverGetVersion:            {[]string{"cuDriverGetVersion"}, Plain},
	GetErrorName:                {[]string{"cuGetErrorName"}, Plain},
	GetErrorString:              {[]string{"cuGetErrorString"}, Plain},
	DeviceGet:                   {[]string{"cuDeviceGet"}, Plain},
	DeviceGetCount:              {[]string{"cuDeviceGetCount"}, Plain},
	DeviceGetName:               {[]string{"cuDeviceGetName"}, Plain},
	DeviceGetUUID:               {[]string{"cuDeviceGetUuid_v2"}, Plain},
	DeviceGetPCIBusID:           {[]string{"cuDeviceGetPCIBusId"}, Plain},
	DeviceTotalMem:              {[]string{"cuDeviceTotalMem_v2"}, Plain},
	DeviceGetAttribute:          {[]string{"cuDeviceGetAttribute"}, Plain},
	PrimaryCtxRetain:            {[]string{"cuDevicePrimaryCtxRetain"}, Stalling},
	PrimaryCtxRelease:           {[]string{"cuDevicePrimaryCtxRelease_v2"}, Stalling},
	CtxSetCurrent:               {[]string{"cuCtxSetCurrent"}, Plain},
	CtxGetCurrent:               {[]string{"cuCtxGetCurrent"}, Plain},
	CtxGetStreamPriorityRange:   {[]string{"cuCtxGetStreamPriorityRange"}, Plain},
	LibraryLoadData:             {[]string{"cuLibraryLoadData"}, Plain},
	LibraryUnload:               {[]string{"cuLibraryUnload"}, Stalling},
	LibraryGetKernel:            {[]string{"cuLibraryGetKernel"}, Plain},
	KernelGetFunction:           {[]string{"cuKernelGetFunction"}, Stalling}, // puts the kernel on the device
	FuncLoad:                    {[]string{"cuFuncLoad"}, Stalling},
	FuncGetAttribute:            {[]string{"cuFuncGetAttribute"}, Plain},
	FuncSetAttribute:            {[]string{"cuFuncSetAttribute"}, Plain},
	OccupancyMaxActiveBlocks:    {[]string{"cuOccupancyMaxActiveBlocksPerMultiprocessor"}, Plain},
	MemGetInfo:                  {[]string{"cuMemGetInfo_v2"}, Plain},
	MemGetAllocationGranularity: {[]string{"cuMemGetAllocationGranularity"}, Plain},
	MemAddressReserve:           {[]string{"cuMemAddressReserve"}, Plain},
	MemAddressFree:              {[]string{"cuMemAddressFree"}, Plain},
	MemCreate:                   {[]string{"cuMemCreate"}, Plain},
	MemRelease:                  {[]string{"cuMemRelease"}, Plain},
	MemMap:                      {[]string{"cuMemMap"}, Plain},
	MemUnmap:                    {[]string{"cuMemUnmap"}, Plain},
	MemSetAccess:                {[]string{"cuMemSetAccess"}, Plain},
	MemHostRegister:             {[]string{"cuMemHostRegister_v2"}, Stalling},
	MemHostUnregister:           {[]string{"cuMemHostUnregister"}, Stalling},
	MemcpyHtoDAsync:             {[]string{"cuMemcpyHtoDAsync_v2"}, Queue},
	MemcpyDtoHAsync:             {[]string{"cuMemcpyDtoHAsync_v2"}, Queue},
	MemcpyDtoDAsync:             {[]string{"cuMemcpyDtoDAsync_v2"}, Queue},
	MemsetD8Async:               {[]string{"cuMemsetD8Async"}, Queue},
	MemsetD32Async:              {[]string{"cuMemsetD32Async"}, Queue},
	StreamCreateWithPriority:    {[]string{"cuStreamCreateWithPriority"}, Plain},
	StreamDestroy:               {[]string{"cuStreamDestroy_v2"}, Plain},
	StreamWaitEvent:             {[]string{"cuStreamWaitEvent"}, Queue},
	EventCreate:                 {[]string{"cuEventCreate"}, Plain},
	EventDestroy:                {[]string{"cuEventDestroy_v2"}, Plain},
	EventRecord:                 {[]string{"cuEventRecord"}, Queue},
	EventQuery:                  {[]string{"cuEventQuery"}, Wait},
	EventElapsedTime:            {[]string{"cuEventElapsedTime_v2", "cuEventElapsedTime"}, Plain},
	LaunchKernel:                {[]string{"cuLaunchKernel"}, Queue},
}

// String is the entry's first name in the driver.
func (e Entry) String() string { return entries[e].symbols[0] }

// Class is what a call of the entry does to the device.
func (e Entry) Class() Class { return entries[e].class }

// Symbols are the names by which the entry is looked for, best first.
func (e Entry) Symbols() []string { return entries[e].symbols }
