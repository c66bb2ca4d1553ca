-- An Nsight Systems export in miniature; its bytes are the fixture.
CREATE TABLE StringIds (id INTEGER PRIMARY KEY, value TEXT NOT NULL);
INSERT INTO StringIds VALUES (1, 'Kernel'), (2, 'void cutlass::Kernel<cutlass_80_tensorop_bf16>(Params)'),
  (3, 'ncclDevKernel_AllReduce_Sum_f32_RING_LL'), (4, 'vectorized_elementwise_kernel'), (5, '');
CREATE TABLE TARGET_INFO_GPU (vmId INTEGER, id INTEGER, name TEXT);
INSERT INTO TARGET_INFO_GPU VALUES (0, 0, 'NVIDIA GH200 120GB');
CREATE TABLE CUPTI_ACTIVITY_KIND_KERNEL (start INTEGER, end INTEGER, deviceId INTEGER, correlationId INTEGER,
  demangledName INTEGER, shortName INTEGER);
INSERT INTO CUPTI_ACTIVITY_KIND_KERNEL VALUES (1000, 5000, 0, 1, 2, 1), (6000, 8000, 0, 2, 2, 1), (4000, 7000, 0, 3, 3, 3),
  (9000, 9500, 0, 4, 4, 4), (9900, 9800, 0, 5, 4, 4), (9900, 9950, 0, 6, 5, 5);
CREATE TABLE CUPTI_ACTIVITY_KIND_MEMCPY (start INTEGER, end INTEGER, bytes INTEGER, copyKind INTEGER);
INSERT INTO CUPTI_ACTIVITY_KIND_MEMCPY VALUES (0, 1000, 50000, 1), (0, 2000, 50000, 2), (0, 1000, 64, 4);
